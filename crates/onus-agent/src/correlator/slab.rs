//! Values at places that are used again; a token tells one use of a place from the next.

use super::token::Token;

pub(super) struct Slab<T> {
    places: Vec<Place<T>>,
    /// The place that became free last, the start of a chain.
    free: Option<u32>,
    len: usize,
    max: usize,
    first_generation: u32,
}

struct Place<T> {
    /// Raised whenever the place becomes free.
    generation: u32,
    content: Content<T>,
}

enum Content<T> {
    Taken(T),
    Free { next: Option<u32> },
}

/// Room reserved at once; untouched memory costs nothing, and growing a large table under the
/// lock would stop every request.
const RESERVED: usize = 65_536;

impl<T> Slab<T> {
    pub(super) fn new(max: usize, first_generation: u32) -> Self {
        let max = max.min(u32::MAX as usize);
        let places = Vec::with_capacity(max.min(RESERVED));
        Self { places, free: None, len: 0, max, first_generation }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Stores a value, or gives it back where there is no room.
    pub(super) fn insert(&mut self, value: T) -> Result<Token, T> {
        let Some(index) = self.free else {
            return self.append(value);
        };
        let Some(place) = self.places.get_mut(index as usize) else { return Err(value) };
        self.free = match place.content {
            Content::Free { next } => next,
            Content::Taken(_) => return Err(value),
        };
        place.content = Content::Taken(value);
        self.len += 1;
        Ok(Token { index, generation: place.generation })
    }

    fn append(&mut self, value: T) -> Result<Token, T> {
        if self.places.len() >= self.max {
            return Err(value);
        }
        let token = Token { index: self.places.len() as u32, generation: self.first_generation };
        let content = Content::Taken(value);
        self.places.push(Place { generation: token.generation, content });
        self.len += 1;
        Ok(token)
    }

    pub(super) fn get(&self, token: Token) -> Option<&T> {
        let place = self.places.get(token.index as usize)?;
        match &place.content {
            Content::Taken(value) if place.generation == token.generation => Some(value),
            Content::Taken(_) | Content::Free { .. } => None,
        }
    }

    pub(super) fn get_mut(&mut self, token: Token) -> Option<&mut T> {
        let place = self.places.get_mut(token.index as usize)?;
        match &mut place.content {
            Content::Taken(value) if place.generation == token.generation => Some(value),
            Content::Taken(_) | Content::Free { .. } => None,
        }
    }

    pub(super) fn remove(&mut self, token: Token) -> Option<T> {
        self.get(token)?;
        let place = self.places.get_mut(token.index as usize)?;
        let free = Content::Free { next: self.free };
        match std::mem::replace(&mut place.content, free) {
            Content::Taken(value) => {
                place.generation = place.generation.wrapping_add(1);
                self.free = Some(token.index);
                self.len -= 1;
                Some(value)
            }
            // Not reached: the token was found above.
            Content::Free { .. } => None,
        }
    }
}
