//! The layers over mock services, with paused time.

mod bodies;
mod readiness;
mod retries;
mod time;
