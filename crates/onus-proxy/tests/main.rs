//! The sidecar on real sockets, beside applications that know nothing of it.

#[cfg(test)]
mod cast;
#[cfg(test)]
mod configuration;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod operations;
#[cfg(test)]
mod python;
