//! The layers in the stacks people use, over real connections.

mod peer;
mod reqwest;
