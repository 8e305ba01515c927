//! What was found by trying to break the layers: hostile bodies, bare runtimes, calls dropped at
//! any point, other layers around and below.

mod bodies;
mod ends;
mod looks;
mod nested;
mod runtimes;
mod stacks;
mod stress;
mod trailers;
#[cfg(feature = "hyper")]
mod wire;
