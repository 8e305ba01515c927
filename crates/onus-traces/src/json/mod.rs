//! JSON that is walked and not built: a parser that remembers nothing of what it passed.

mod broken;
mod skip;
mod text;
mod walk;

pub(crate) use broken::Broken;
pub use broken::Why;
pub(crate) use walk::{Json, Turn};
