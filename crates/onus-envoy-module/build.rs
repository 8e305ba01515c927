//! Links the library against nothing but libc, so that it loads in images that have no more.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A Rust library asks for `libgcc_s.so.1` to unwind panics, which distroless images lack. What
    // the linker finds first under that name is this text, which puts the static library in its
    // place.
    let linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let gnu = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    if let Some(dir) = env::var_os("OUT_DIR").map(PathBuf::from).filter(|_| linux && gnu) {
        fs::write(dir.join("libgcc_s.so"), "GROUP ( -l:libgcc_eh.a -l:libgcc.a )\n")
            .expect("the build's own directory can be written to");
        println!("cargo:rustc-link-search=native={}", dir.display());
    }
}
