//! The layers over mock services, with paused time.

mod across;
mod answers;
mod bodies;
mod deadlines;
mod fan_out;
mod faults;
mod first;
mod grpc;
mod origins;
mod peek;
mod readiness;
mod reconfigure;
mod repeats;
mod resends;
mod retries;
mod scope;
mod sick_instance;
mod switch_file;
mod time;
mod together;
