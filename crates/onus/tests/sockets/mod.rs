//! The layers in the stacks people use, over real connections.

mod axum;
mod hyper;
mod peer;
mod reqwest;
mod scripted;
mod tonic;
