//! `onus proxy` and `onus config` as processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A configuration in a file of its own.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onus-{}-{name}.yaml", std::process::id()));
        std::fs::write(&path, text).expect("as the test sets it up");
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn yaml(more: &str) -> String {
    format!(
        "service: checkout\ninbound: {{listen: \"127.0.0.1:0\", app: \"127.0.0.1:1\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n{more}"
    )
}

fn onus(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
    command.args(args).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

fn output(args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = onus(args).output().expect("as the test sets it up");
    let text = |bytes| String::from_utf8(bytes).expect("as the test sets it up");
    (status.code(), text(stdout), text(stderr))
}

/// A proxy that runs.
struct Running {
    child: Child,
    lines: BufReader<ChildStderr>,
}

impl Running {
    fn start(file: &File) -> Self {
        let path = file.0.to_str().expect("as the test sets it up");
        let mut child = onus(&["proxy", "-c", path])
            .stderr(Stdio::piped())
            .spawn()
            .expect("as the test sets it up");
        let lines = BufReader::new(child.stderr.take().expect("as the test sets it up"));
        Self { child, lines }
    }

    /// The first line that has this in it.
    fn says(&mut self, part: &str) -> String {
        let all = self.until(part);
        all.lines().last().unwrap_or_default().to_owned()
    }

    /// The lines up to the first that has this in it.
    fn until(&mut self, part: &str) -> String {
        let mut all = String::new();
        loop {
            let end = all.len();
            let read = self.lines.read_line(&mut all).expect("as the test sets it up");
            assert!(read > 0, "{part:?} is not in\n{all}");
            if all[end..].contains(part) {
                return all;
            }
        }
    }

    /// Where it listens for this.
    fn listens(line: &str, what: &str) -> SocketAddr {
        let address = line.split(&format!("{what}=")).nth(1).expect("it is told");
        let address = address.split_whitespace().next().expect("it is told");
        address.parse().expect("it is an address")
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("as the test sets it up");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("as the test sets it up");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .expect("as the test sets it up");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("as the test sets it up");
    text
}

#[test]
fn it_says_where_it_listens_reloads_and_ends_when_it_is_told() {
    let file = File::new("runs", &yaml(""));
    let mut proxy = Running::start(&file);
    let line = proxy.says("the proxy listens");
    let admin = Running::listens(&line, "admin");
    assert!(get(admin, "/readyz").starts_with("HTTP/1.1 200"));

    std::fs::write(&file.0, yaml("mode: enforce\n")).unwrap();
    proxy.signal(Signal::HUP);
    proxy.says("another configuration is in force");
    assert!(
        get(admin, "/metrics").contains("onus_mode{service=\"checkout\",mode=\"enforce\"} 1.0")
    );
    std::fs::write(&file.0, yaml("mode: loud\n")).unwrap();
    proxy.says("configuration refused");
    assert!(get(admin, "/metrics").contains("onus_proxy_config_refused 1.0"));

    proxy.signal(Signal::TERM);
    proxy.says("the proxy drains");
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_log_says_what_is_in_force_and_nothing_of_what_is_not() {
    let callee = "callees: {pay: {address: \"nobody.invalid:80\"}}\n";
    let file = File::new("in-force", &yaml(callee));
    let mut proxy = Running::start(&file);
    let before = proxy.until("the proxy listens");
    assert_eq!(before.matches("onus: observing").count(), 1, "{before}");
    // Nobody has to call it for that.
    proxy.says("the resolver has no address host=\"nobody.invalid\"");

    let other_port =
        yaml(&format!("mode: enforce\n{callee}")).replace("127.0.0.1:0", "127.0.0.1:9");
    std::fs::write(&file.0, other_port).unwrap();
    let refused = proxy.until("configuration refused");
    assert!(
        refused.contains("error=\"use the configuration: another inbound.listen needs a restart\""),
        "{refused}"
    );
    assert!(!refused.contains("onus: enforcing"), "{refused}");
}

#[test]
fn a_file_that_cannot_be_read_to_its_end_holds_up_no_end() {
    let file = File::new("hangs", &yaml(""));
    let mut proxy = Running::start(&file);
    proxy.says("the proxy listens");
    // Whoever opens it waits for somebody who writes.
    std::fs::remove_file(&file.0).unwrap();
    assert!(Command::new("mkfifo").arg(&file.0).status().unwrap().success());
    // And this one for the proxy, which looks at its file.
    let writer = std::fs::OpenOptions::new().write(true).open(&file.0).unwrap();
    proxy.signal(Signal::TERM);
    proxy.says("the proxy drains");
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
    drop(writer);
}

#[test]
fn a_hook_begins_the_drain_and_the_signal_ends_it() {
    let file = File::new("hook", &yaml(""));
    let mut proxy = Running::start(&file);
    let admin = Running::listens(&proxy.says("the proxy listens"), "admin");
    for _ in 0..2 {
        let (code, stdout, stderr) = output(&["proxy", "drain", &admin.to_string()]);
        assert_eq!((code, &*stdout), (Some(0), ""), "{stderr}");
    }
    proxy.says("the proxy drains");
    assert!(get(admin, "/readyz").starts_with("HTTP/1.1 503"));
    assert!(proxy.child.try_wait().unwrap().is_none(), "it waits for the signal");
    proxy.signal(Signal::TERM);
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
    let (code, _, stderr) = output(&["proxy", "drain", &admin.to_string()]);
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with(&format!("error: failed to ask http://{admin}: ")), "{stderr}");
}

#[test]
fn what_keeps_it_from_starting_is_told_in_a_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let port = yaml("")
        .replace("admin: {listen: \"127.0.0.1:0\"}", &format!("admin: {{listen: \"{address}\"}}"));
    let own = yaml(&format!("callees: {{b: {{address: \"b:80\", listen: \"{address}\"}}}}\n"));
    let tls = |key: &str| {
        let app = "app: \"127.0.0.1:1\"";
        yaml("").replace(app, &format!("{app}, tls: {{certificate: {key}, key: {key}}}"))
    };
    let (port, bad) = (File::new("port", &port), File::new("bad", &yaml("workers: 0\n")));
    let (own, no_file) = (File::new("own", &own), File::new("no-file", &tls("/nowhere/tls.crt")));
    let garbage = File::new("garbage", "no certificate\n");
    let no_certificate = File::new("no-certificate", &tls(garbage.0.to_str().unwrap()));
    for (path, says) in [
        (port.0.to_str().unwrap(), format!("error: failed to listen on {address} for admin: ")),
        (
            bad.0.to_str().unwrap(),
            "error: failed to use the configuration: workers is \"0\"".into(),
        ),
        (
            own.0.to_str().unwrap(),
            format!("error: failed to listen on {address} for callee \"b\": "),
        ),
        (
            no_file.0.to_str().unwrap(),
            "error: failed to use the configuration: inbound.tls (line 2): read /nowhere/tls.crt: "
                .into(),
        ),
        (
            no_certificate.0.to_str().unwrap(),
            "error: failed to use the configuration: inbound.tls (line 2): ".into(),
        ),
        ("/nowhere/onus.yaml", "error: failed to read /nowhere/onus.yaml: ".into()),
    ] {
        let (code, stdout, stderr) = output(&["proxy", "-c", path]);
        assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
        let told: Vec<_> = stderr.lines().filter(|line| line.starts_with("error:")).collect();
        assert_eq!(told.len(), 1, "{stderr}");
        assert!(told[0].starts_with(&says), "{stderr}");
    }
}

#[test]
fn configurations_are_checked_shown_and_explained() {
    let (good, bad) = (File::new("good", &yaml("")), File::new("malformed", "service: [\n"));
    let (good, bad) = (good.0.to_str().unwrap(), bad.0.to_str().unwrap());
    assert_eq!(output(&["config", "validate", good]), (Some(0), String::new(), String::new()));
    let (code, _, stderr) = output(&["config", "validate", bad]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.starts_with("error: failed to understand the configuration: line 1"),
        "{stderr}"
    );
    assert!(stderr.contains(&format!("--> {bad}:1:10")), "{stderr}");
    let never =
        File::new("never", &yaml("callees: {b: {address: \"b:80\", retry: {attempts: 11}}}\n"));
    let (_, _, stderr) = output(&["config", "validate", never.0.to_str().unwrap()]);
    let told = "retry policy for b: attempts is 11; allowed is 1 to 10 (line 5)\n";
    assert_eq!(stderr, format!("error: failed to use the configuration: {told}"));
    let (code, shown, _) = output(&["config", "show", good]);
    assert!(code == Some(0) && shown.contains("header-timeout: 10s"), "{shown}");
    let (code, example, _) = output(&["config", "example"]);
    let example = File::new("example", &example);
    assert_eq!(code, Some(0));
    assert_eq!(output(&["config", "validate", example.0.to_str().unwrap()]).0, Some(0));
    let (code, schema, _) = output(&["config", "schema"]);
    assert!(code == Some(0) && serde_json::from_str::<serde_json::Value>(&schema).is_ok());
}

#[test]
fn attempts_of_several_sidecars_are_shown_while_they_happen() {
    let nobody = "callees: {pay: {address: \"127.0.0.1:1\"}}\n";
    let file = File::new("tailed", &yaml(nobody));
    let mut proxies = [Running::start(&file), Running::start(&file)];
    let lines = proxies.each_mut().map(|proxy| proxy.says("the proxy listens"));
    let admins = lines.each_ref().map(|line| Running::listens(line, "admin").to_string());
    let outbounds = lines.each_ref().map(|line| Running::listens(line, "outbound"));
    let call = |proxy: usize| {
        let mut stream = TcpStream::connect(outbounds[proxy]).unwrap();
        write!(stream, "GET /a HTTP/1.1\r\nhost: pay\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 503"), "{text}");
    };
    for (format, columns) in [
        ("table", &["checkout", "pay", "GET /a", "127.0.0.1:1", "error="][..]),
        ("json", &["\"service\":\"checkout\"", "\"callee\":\"pay\"", "\"status\":0"]),
    ] {
        let mut tail = onus(&["tail", "--edge", "pay", "-o", format, &admins[0], &admins[1]])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut shown = BufReader::new(tail.stdout.take().unwrap());
        let mut next = || {
            let mut line = String::new();
            shown.read_line(&mut line).unwrap();
            line
        };
        // It reads once both count it.
        for admin in &admins {
            let admin = admin.parse().unwrap();
            while !get(admin, "/metrics").contains("onus_proxy_tail_readers 1.0\n") {}
        }
        if format == "table" {
            assert!(next().starts_with("TIME (UTC)"));
        }
        for proxy in [0, 1] {
            call(proxy);
            let line = next();
            assert!(columns.iter().all(|column| line.contains(column)), "{line}");
        }
        tail.kill().unwrap();
        tail.wait().unwrap();
        for admin in &admins {
            let admin = admin.parse().unwrap();
            while !get(admin, "/metrics").contains("onus_proxy_tail_readers 0.0\n") {}
        }
    }
    let (code, _, stderr) = output(&["tail", "--status", "loud", &admins[0]]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("allowed is one like 503, 5xx, grpc-14 or none"), "{stderr}");
    assert_eq!(output(&["tail", "127.0.0.1:1"]).0, Some(1));
}

#[test]
fn variables_win_over_the_file_and_are_named() {
    let file = File::new("variables", &yaml("mode: observe\n").replace("service: checkout\n", ""));
    let path = file.0.to_str().unwrap();
    let with = |args: &[&str], variables: &[(&str, &str)]| {
        let output = onus(args).envs(variables.iter().copied()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let service = ("ONUS_SERVICE", "shop/pay");
    let (code, shown, _) = with(&["config", "show", path], &[service, ("ONUS_MODE", "off")]);
    assert_eq!(code, Some(0));
    for line in [
        "service: shop/pay  # ONUS_SERVICE",
        "mode: \"off\"  # ONUS_MODE",
        "  listen: 127.0.0.1:0  # file",
        "workers: 1  # default",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line} is not in\n{shown}");
    }
    for command in [&["proxy", "-c", path][..], &["config", "validate", path]] {
        let (code, stdout, stderr) = with(command, &[service, ("ONUS_MODE", "loud")]);
        assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
        let says = "error: failed to use the environment: ONUS_MODE is \"loud\": ";
        assert!(stderr.starts_with(says), "{stderr}");
    }
    let mut command = onus(&["proxy", "-c", path]);
    command.env("ONUS_SERVICE", "shop/pay").env("ONUS_MODE", "enforce").env("ONUS_MODUS", "off");
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap());
    let mut proxy = Running { child, lines };
    let admin = Running::listens(&proxy.says("the proxy listens"), "admin");
    proxy.says("ONUS_MODUS");
    let mode = "onus_mode{service=\"shop/pay\",mode=\"enforce\"} 1.0";
    assert!(get(admin, "/metrics").contains(mode));
    // They win over what the file says later too.
    std::fs::write(&file.0, yaml("mode: observe\nlimits: {requests: 7}\n")).unwrap();
    proxy.signal(Signal::HUP);
    proxy.says("another configuration is in force");
    assert!(get(admin, "/metrics").contains(mode));
}

#[test]
fn who_calls_nobody_is_told_why_in_the_words_of_its_protocol() {
    let file = File::new("nobody", &yaml("callees: {pay: {address: \"127.0.0.1:1\"}}\n"));
    let mut proxy = Running::start(&file);
    let line = proxy.says("the proxy listens");
    let (inbound, outbound) =
        (Running::listens(&line, "inbound"), Running::listens(&line, "outbound"));
    let ask = |address: SocketAddr, host: &str, grpc: bool| {
        let mut stream = TcpStream::connect(address).unwrap();
        let kind = if grpc { "content-type: application/grpc\r\n" } else { "" };
        write!(
            stream,
            "POST /a.B/C HTTP/1.1\r\nhost: {host}\r\n{kind}content-length: 0\r\n\
             connection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    for (address, host, grpc, parts) in [
        (outbound, "who", false, &["HTTP/1.1 404", "no callee \"who\" is configured"][..]),
        (outbound, "who", true, &["HTTP/1.1 200", "grpc-status: 12", "no callee \"who\""]),
        (outbound, "pay", false, &["HTTP/1.1 503", "error=connection_refused", "127.0.0.1:1"]),
        (outbound, "pay", true, &["HTTP/1.1 200", "grpc-status: 14", "127.0.0.1:1"]),
        // The application cannot be reached: an error of this service, with its claim.
        (
            inbound,
            "a",
            false,
            &["HTTP/1.1 503", "onus-claim: claimed;reason=own", "proxy-status: "],
        ),
        (inbound, "a", true, &["grpc-status: 14", "onus-claim: claimed;reason=own"]),
    ] {
        let answer = ask(address, host, grpc);
        for part in parts {
            assert!(answer.contains(part), "{part} is not in\n{answer}");
        }
    }
}
