//! What Envoy shows a filter of one stream.

use std::borrow::Cow;
use std::time::SystemTime;

use onus_agent::Timestamp;

/// One request and its response, as Envoy shows it to a filter during a hook.
pub trait Stream: Clock {
    /// Shows every line of a header block, in order; names are in lower case.
    fn each_line(&self, block: Block, each: &mut dyn FnMut(&[u8], &[u8]));

    /// Adds a line of a name that the block does not have: no line need be looked for.
    fn add(&mut self, block: Block, name: &str, value: &[u8]);

    /// Puts one line in place of all of that name.
    fn set(&mut self, block: Block, name: &str, value: &[u8]);

    /// Takes all lines of that name out.
    fn remove(&mut self, block: Block, name: &str);

    /// The cluster that the route leads to, where there is a route; "" where none is known.
    fn cluster(&self) -> Cow<'_, str>;

    /// The name of the route; "" where it has none.
    fn route(&self) -> Cow<'_, str>;

    /// How many attempts Envoy's router has made so far; `None` where this Envoy does not say.
    fn attempts(&self) -> Option<u32>;

    /// Whether the response came from the callee, and not from Envoy itself; `None` where this Envoy
    /// does not say.
    fn is_reply(&self) -> Option<bool>;

    /// The response flags, as bits; `None` where this Envoy does not say.
    fn response_flags(&self) -> Option<u64>;

    /// Leaves a number for the filters of this call's attempts, once; nothing where Envoy has no place
    /// for it.
    fn leave(&mut self, number: u64);

    /// What was left for the filters of this call's attempts.
    fn left(&self) -> Option<u64>;

    /// Answers this attempt in place of the callee with a 503 that says why, and is not retried; whether
    /// this Envoy can.
    fn refuse(&mut self, why: &str) -> bool;

    /// The table of bytes that all workers share; `None` where they share memory.
    fn shared(&self) -> Option<&dyn Shared>;
}

/// Time and chance, as the process has them.
pub trait Clock {
    /// The time, from whatever start.
    fn now(&self) -> Timestamp;

    /// The wall clock, for headers that name a date.
    fn wall(&self) -> SystemTime;

    /// Random bits.
    fn bits(&self) -> u64;
}

/// A table of bytes that all workers of a process share.
pub trait Shared {
    /// Shows what stands under `key`, and the number of its version, if there is anything.
    fn show(&self, key: &str, show: &mut dyn FnMut(&[u8], u32));

    /// What stands under `key`, and the number of its version.
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        let mut got = None;
        self.show(key, &mut |value, version| got = Some((value.to_vec(), version)));
        got
    }

    /// Puts `value` under `key`, if what stands there is still of this version; whether it was. 0:
    /// whatever stands there.
    fn set(&self, key: &str, value: &[u8], version: u32) -> bool;

    /// Counts a call that could be tied to no request.
    fn note_untied(&self);

    /// How many such calls all workers have made so far.
    fn untied(&self) -> u64;

    /// A number that nobody else has got: who files records has one, and no other's keys.
    fn next_number(&self) -> u16;
}

/// A header block of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Block {
    /// The request's head.
    Request,
    /// The response's head.
    Response,
    /// The response's trailers.
    Trailers,
}
