//! Seven small services that show a retry storm, and Onus stopping it, on real sockets.
