//! The layers as their users meet them: over mock services with paused time, over real sockets,
//! and through the vectors that every host of the protocol runs.

#[cfg(test)]
mod breaks;
#[cfg(test)]
mod cast;
#[cfg(test)]
mod conformance;
#[cfg(test)]
#[cfg(feature = "hyper")]
mod frames;
#[cfg(test)]
mod layers;
#[cfg(test)]
#[cfg(all(
    feature = "axum",
    feature = "hyper",
    feature = "reqwest",
    feature = "test",
    feature = "tonic"
))]
mod sockets;
