//! Requests and calls under way, in places that are used again: the steady state allocates nothing.

/// A place in a slab, and who is meant to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ref {
    index: u32,
    generation: u32,
}

/// Values in places that are used again. A reference outlives its value, and then finds nothing.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, value: T) -> Ref {
        if let Some(index) = self.free.pop() {
            let (generation, place) = &mut self.places[index as usize];
            *place = Some(value);
            return Ref { index, generation: *generation };
        }
        self.places.push((0, Some(value)));
        Ref { index: (self.places.len() - 1) as u32, generation: 0 }
    }

    pub(super) fn get(&self, at: Ref) -> Option<&T> {
        let (generation, place) = &self.places[at.index as usize];
        place.as_ref().filter(|_| *generation == at.generation)
    }

    pub(super) fn get_mut(&mut self, at: Ref) -> Option<&mut T> {
        let (generation, place) = &mut self.places[at.index as usize];
        if *generation == at.generation { place.as_mut() } else { None }
    }

    /// Takes the value out; its references find nothing from then on.
    pub(super) fn remove(&mut self, at: Ref) -> Option<T> {
        let (generation, place) = &mut self.places[at.index as usize];
        if *generation != at.generation {
            return None;
        }
        let value = place.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(at.index);
        Some(value)
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_and_its_old_reference_finds_nothing() {
        let mut slab = Slab::new();
        let first = slab.insert(1);
        assert_eq!((slab.get(first), slab.len()), (Some(&1), 1));
        assert_eq!(slab.remove(first), Some(1));
        assert_eq!(slab.remove(first), None);
        let second = slab.insert(2);
        assert_eq!((slab.get(first), slab.get(second), slab.len()), (None, Some(&2), 1));
        assert!(slab.get_mut(first).is_none());
        assert_eq!(slab.places.len(), 1);
    }
}
