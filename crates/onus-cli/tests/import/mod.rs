//! `onus config import` as people run it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use onus_retry_config::{Caller, Dialect, Import};

/// Runs `onus config import` with this on standard input: exit code, standard output and error.
fn import(arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
    command.env_remove("RUST_LOG").args(["config", "import"]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command runs");
    let mut stdin = child.stdin.take().expect("it is piped");
    // A command that refuses its arguments does not read.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let Output { status, stdout, stderr } = child.wait_with_output().expect("the command ends");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    (status.code(), text(stdout), text(stderr))
}

/// Whether `onus config validate` accepts it.
fn is_valid(text: &str, name: &str) -> bool {
    let path = std::env::temp_dir().join(format!("onus-import-{}-{name}", std::process::id()));
    fs::write(&path, text).expect("there is room");
    let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
    let output = command.args(["config", "validate"]).arg(&path).output().expect("it runs");
    let _ = fs::remove_file(path);
    output.status.success()
}

/// What `kubectl get -o yaml` prints, in short.
const MESH: &str = r#"apiVersion: v1
kind: List
items:
- apiVersion: networking.istio.io/v1
  kind: VirtualService
  metadata: {name: payments, namespace: shop}
  spec:
    hosts: [payments]
    http:
    - match: [{uri: {exact: /charge}, method: {exact: POST}}]
      retries: {attempts: 1, retryOn: connect-failure}
      route: [{destination: {host: payments, port: {number: 9080}}}]
    - match: [{headers: {beta: {exact: "1"}}}]
      retries: {attempts: 5, retryOn: 5xx}
      route: [{destination: {host: payments}}]
    - retries: {attempts: 2, perTryTimeout: 500ms, retryOn: "503,connect-failure,refused-stream"}
      timeout: 2s
      route: [{destination: {host: payments}}]
- apiVersion: networking.istio.io/v1
  kind: VirtualService
  metadata: {name: ledger, namespace: books}
  spec:
    hosts: [ledger]
    http: [{route: [{destination: {host: ledger}}]}]
- apiVersion: networking.istio.io/v1
  kind: VirtualService
  metadata: {name: edge, namespace: shop}
  spec:
    hosts: [shop.example.com]
    gateways: [istio-system/public]
    http: [{retries: {attempts: 1, retryOn: 5xx}, route: [{destination: {host: web}}]}]
"#;

#[test]
fn retries_of_a_mesh_become_policies_of_the_sidecar() {
    let options = ["--service", "shop/checkout", "--made-by", "onus", "-"];
    let (code, stdout, stderr) = import(&options, MESH);
    let payments = "standard input:11: VirtualService shop/payments spec.http[0].retries";
    assert_eq!(
        stdout,
        format!(
            "# Written by `onus config import`. Check addresses, and what is said below of places.
# The sidecar makes these retries: take them out where they were.
service: shop/checkout
inbound: {{app: \"127.0.0.1:8080\"}}
callees:
  books/ledger:
    address: ledger.books.svc.cluster.local:80  # the port is assumed
    hosts: [ledger.books]
    # standard input:24: VirtualService books/ledger spec.http[0]: what the mesh does by itself
    retry: {{attempts: 3, errors: [grpc-1, grpc-14, connect]}}
  shop/payments:
    address: payments.shop.svc.cluster.local:9080
    hosts: [payments, payments.shop]
    routes: [/charge]
    # standard input:16: VirtualService shop/payments spec.http[2].retries
    retry: {{attempts: 3, errors: [http-503, connect], deadline: 2s, per-try-timeout: 500ms}}
    procedures:
      # {payments}
      POST /charge: {{attempts: 2, errors: [connect]}}
"
        )
    );
    let lost: Vec<_> = stderr.lines().collect();
    let unsafe_methods = "POST, PUT, PATCH and DELETE too, whose work may be done twice \
                          (--unsafe-methods)";
    let lost_as = |line: &str| format!("not carried over: standard input:{line}");
    assert_eq!(
        lost,
        [
            lost_as(&format!(
                "14: VirtualService shop/payments spec.http[1].retries: {unsafe_methods}"
            )),
            lost_as(
                "14: VirtualService shop/payments spec.http[1].retries: limited by headers, which \
                 procedures know nothing of"
            ),
            lost_as(&format!(
                "16: VirtualService shop/payments spec.http[2].retries: {unsafe_methods}"
            )),
            lost_as(&format!("24: VirtualService books/ledger spec.http[0]: {unsafe_methods}")),
            lost_as(
                "31: VirtualService shop/edge spec.http[0].retries: retries of a gateway \
                 (--gateway, if the service is one)"
            ),
        ]
    );
    assert_eq!(code, Some(3));
    assert!(is_valid(&stdout, "onus"), "{stdout}");
}

#[test]
fn retries_that_the_mesh_goes_on_to_make_are_declared() {
    let options = ["--service", "shop/checkout", "--made-by", "below", "--port", "8080", "-"];
    let (code, stdout, stderr) = import(&options, MESH);
    for part in [
        "address: ledger.books.svc.cluster.local:8080  # the port is assumed",
        "retries: {made-by: below, like: istio-default}\n",
        "retries: {made-by: below, attempts: 6, errors: [http-5xx, connect, reset, protocol, \
         timeout]}\n",
    ] {
        assert!(stdout.contains(part), "{part}\nis not in\n{stdout}");
    }
    // A declaration knows no routes, so what is said of some is told.
    let told: Vec<_> = stderr.lines().filter_map(|line| line.split(':').nth(2)).collect();
    assert_eq!((code, told), (Some(3), vec!["11", "14", "16", "31"]), "{stderr}");
    assert!(is_valid(&stdout, "below"), "{stdout}");
}

#[test]
fn what_is_carried_over_whole_ends_with_success() {
    let rule = |more: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: a, \
             namespace: shop}}\nspec: {{hosts: [a], http: [{{{more}, route: [{{destination: \
             {{host: a}}}}]}}]}}\n"
        )
    };
    let grpc = r#"{"methodConfig": [{"name": [{"service": "pkg.Books", "method": "Get"}],
        "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s",
        "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE", "ABORTED"]}}]}"#;
    let all = "retries: {attempts: 1, retryOn: 5xx}";
    let get = "match: [{method: {exact: GET}}], retries: {attempts: 1, retryOn: '503,504'}";
    let other = "match: [{sourceLabels: {app: other}}], retries: {attempts: 1, retryOn: 5xx}";
    for (input, more, expected) in [
        (
            rule(all),
            &["--unsafe-methods"][..],
            "retry: {attempts: 2, errors: [http-5xx, connect, \
          reset, protocol, timeout], unsafe-methods: true}",
        ),
        (rule(get), &[], "GET: {attempts: 2, errors: [http-503, http-504]}"),
        (rule("retries: {attempts: 0}"), &[], "http[0].retries: no retries\n"),
        // Nothing was done yet where no connection could be made.
        (
            rule("retries: {attempts: 1, retryOn: connect-failure}"),
            &[],
            "errors: [connect], \
          unsafe-methods: true}",
        ),
        (rule(other), &[], "callees: {}\n"),
        (rule(get), &["--callee", "shop/b"], "callees: {}\n"),
        (rule(get), &["--callee", "shop/a"], "  shop/a:\n"),
        (
            grpc.to_owned(),
            &["--grpc-callee", "shop/books"],
            "/pkg.Books/Get: {attempts: 4, errors: [grpc-10, grpc-14], backoff-base: 100ms, backoff-max: 1s}",
        ),
    ] {
        let arguments = [&["--service", "shop/web", "--made-by", "onus"], more, &["-"]].concat();
        let (code, stdout, stderr) = import(&arguments, &input);
        // A callee that nothing is said of has what Istio does by itself.
        let by_itself = more.contains(&"shop/b");
        if by_itself {
            assert!(stdout.contains("what the mesh does by itself"), "{stdout}");
            continue;
        }
        assert_eq!((code, &*stderr), (Some(0), ""), "{input}");
        assert!(stdout.contains(expected), "{expected}\nis not in\n{stdout}");
    }
}

#[test]
fn every_published_policy_is_in_the_file_or_told() {
    let Some(folder) = shared() else { return };
    for entry in fs::read_dir(&folder).expect("it is a folder") {
        let path = entry.expect("it is a folder").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("it has a name");
        if name.ends_with(".md") {
            continue;
        }
        let file = path.to_str().expect("it has a name");
        let mut read = Import::default();
        read.read(file, &fs::read_to_string(&path).expect("it can be read"));
        let config = read.finish();
        assert!(!config.policies.is_empty(), "{name}");
        for made_by in ["onus", "below"] {
            let service = ["--service", "shop/web", "--made-by", made_by];
            let more = ["--gateway", "--grpc-callee", "shop/api", file];
            let (code, stdout, stderr) = import(&[&service[..], &more[..]].concat(), "");
            assert_eq!(code, Some(if stderr.is_empty() { 0 } else { 3 }), "{name}: {stderr}");
            assert!(is_valid(&stdout, name), "{stdout}");
            for policy in &config.policies {
                let place = format!("{}:{}: ", policy.place.file, policy.place.line);
                let told = stdout.contains(&place) || stderr.contains(&place);
                assert!(told, "{made_by}: {place}\nis in neither\n{stdout}\n{stderr}");
                assert!(matches!(policy.caller, Caller::Anyone | Caller::Gateway));
            }
            let of_client = config.policies.iter().all(|it| it.dialect == Dialect::Grpc);
            let nobody = of_client && made_by == "below";
            assert_eq!(stdout.contains("callees: {}"), nobody, "{stdout}");
        }
    }
}

/// The files that others published. Says so where they are missing.
#[expect(clippy::print_stdout, reason = "whoever runs the tests reads what was skipped")]
fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("ONUS_DATA").map_or(beside, PathBuf::from);
    let folder = data.join("retry-configs");
    if !folder.is_dir() {
        let required = std::env::var("ONUS_PEERS").is_ok_and(|peers| peers == "required");
        assert!(!required, "{} is missing", folder.display());
        println!("skipped: there is no folder {} (ONUS_DATA names another)", folder.display());
        return None;
    }
    Some(folder)
}

#[test]
fn who_makes_the_retries_has_to_be_said() {
    for (arguments, says) in [
        (&["--service", "a", "-"][..], "--made-by <WHO>"),
        (&["--made-by", "onus", "-"], "--service <NAME>"),
        (&["--service", "a", "--made-by", "onus"], "<FILE>..."),
    ] {
        let (code, stdout, stderr) = import(arguments, MESH);
        assert_eq!((code, &*stdout), (Some(2), ""), "{stderr}");
        assert!(stderr.contains(says), "{stderr}");
    }
    let arguments = ["--service", "a", "--made-by", "onus", "/nowhere.yaml"];
    let (code, stdout, stderr) = import(&arguments, "");
    assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
    assert!(stderr.starts_with("error: failed to read /nowhere.yaml: "), "{stderr}");
}
