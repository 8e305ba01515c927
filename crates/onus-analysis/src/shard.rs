//! Several analyses that share the callers of a mesh: each caller belongs to one of them, by a hash
//! of its name, and whoever asks another one is sent there.

/// Which of several analyses this one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The addresses of all of them, in the same order everywhere.
    pub addresses: Vec<String>,
    /// Which of them is this one, from 0.
    pub index: usize,
}

impl Shard {
    /// The analysis that a service belongs to, as a caller.
    pub(crate) fn of(&self, service: &str) -> usize {
        (fnv1a64(service.as_bytes()) % self.addresses.len().max(1) as u64) as usize
    }

    pub(crate) fn owns(&self, service: &str) -> bool {
        self.of(service) == self.index
    }

    /// The addresses of all but this one.
    pub(crate) fn others(&self) -> Vec<String> {
        let others = self.addresses.iter().enumerate().filter(|(at, _)| *at != self.index);
        others.map(|(_, address)| address.clone()).collect()
    }

    /// Where whoever asks for a service must go; `None` where it is right here.
    pub(crate) fn elsewhere(&self, service: &str) -> Option<&str> {
        let of = self.of(service);
        (of != self.index).then(|| self.addresses.get(of).map(String::as_str)).flatten()
    }
}

/// The same in every process and version.
fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_one_owner_and_all_agree() {
        let addresses: Vec<_> = (0..3).map(|n| format!("http://analysis-{n}:7480")).collect();
        let shards: Vec<_> =
            (0..3).map(|index| Shard { addresses: addresses.clone(), index }).collect();
        let mut owned = [0; 3];
        for number in 0..3_000 {
            let service = format!("shop/service-{number}");
            let owners: Vec<_> = shards.iter().filter(|shard| shard.owns(&service)).collect();
            assert_eq!(owners.len(), 1);
            owned[owners[0].index] += 1;
            for shard in &shards {
                let elsewhere = shard.elsewhere(&service);
                let right = addresses[owners[0].index].as_str();
                assert_eq!(elsewhere, (!shard.owns(&service)).then_some(right));
            }
        }
        assert!(owned.iter().all(|count| (900..1_100).contains(count)), "{owned:?}");
        assert_eq!(fnv1a64(b"foobar"), 0x8594_4171_f739_67e8, "the published vector");
    }
}
