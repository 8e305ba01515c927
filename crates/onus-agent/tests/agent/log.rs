//! What people read in the log.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onus_agent::{
    Annotation, EdgeClass, ErrorSet, Mode, RetryPolicy, Share, Source, SwitchFile, Switches,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::host::{Reply, Service, retries};

/// Keeps events up to a level as lines: the level, the message, then the fields in their order.
struct Lines {
    most: Level,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.most
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = event.metadata().level();
        let line = format!("{level} {}{}", line.message, line.fields);
        self.lines.lock().unwrap().push(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => write!(self.fields, " {name}={value:?}").unwrap(),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

/// What is logged while `act` runs.
fn logged(most: Level, act: impl FnOnce()) -> Vec<String> {
    let lines = Arc::default();
    let subscriber = Lines { most, lines: Arc::clone(&lines) };
    tracing::subscriber::with_default(subscriber, act);
    Arc::into_inner(lines).unwrap().into_inner().unwrap()
}

#[test]
fn the_first_line_says_what_this_service_will_do() {
    for (mode, message) in [
        (Mode::Off, "ownership is off: nothing is sent, read or suppressed"),
        (Mode::Observe, "observing: no retry is suppressed"),
        (Mode::ENFORCE, "enforcing: retries of unclaimed errors are suppressed"),
    ] {
        let lines = logged(Level::INFO, || {
            Service::new(mode, |config| {
                config.retry("b", retries(2));
                config.retry_procedure("c", "PUT", retries(2));
                config.declared_retries("d", 3, ErrorSet::failures());
                config.annotate("e", Annotation::Optional);
            });
        });
        let mode = mode.as_str();
        let said = "retries=b, c foreign_retries=d";
        assert_eq!(lines, [format!("INFO onus: {message} service=a mode={mode} {said}")]);
    }
    let lines = logged(Level::INFO, || drop(Service::new(Mode::Observe, |_| {})));
    assert!(lines[0].ends_with("retries=none foreign_retries=none"), "{lines:?}");
}

#[test]
fn a_policy_that_nothing_used_is_named_after_a_minute() {
    let lines = logged(Level::WARN, || {
        let service = Service::new(Mode::Observe, |config| {
            config.retry("paymnets", retries(2));
            config.retry("b", retries(2));
            config.annotate("c", Annotation::Required);
        });
        for _ in 0..3 {
            service.untied_call("b").play(&[Reply::Ok]);
            service.untied_call("payments").play(&[Reply::Ok]);
            service.pass(Duration::from_secs(59));
        }
        service.pass(Duration::from_secs(600));
        service.agent.tick(service.now());
    });
    let expected = "WARN onus: a retry policy names a callee that was not called in the first \
                    minute callee=paymnets called=b, payments";
    assert_eq!(lines, [expected]);
}

#[test]
fn a_service_that_calls_nothing_notices_too() {
    let lines = logged(Level::WARN, || {
        let service = Service::new(Mode::Observe, |config| config.retry("paymnets", retries(2)));
        service.request().ok();
        service.pass(Duration::from_secs(61));
        service.request().ok();
    });
    assert_eq!(lines.len(), 1, "{lines:?}");
}

#[test]
fn retries_of_a_layer_below_are_noticed_once() {
    // [attempt-9]
    let check = |declared: bool, replies: &[&'static str], lines: usize| {
        let logged = logged(Level::WARN, || {
            let service = Service::enforcing(|config| {
                if declared {
                    config.declared_retries("b", 3, ErrorSet::failures());
                }
            });
            for &reply in replies {
                service.request().call("b").play(&[Reply::Error(reply)]);
            }
        });
        assert_eq!(logged.len(), lines, "{logged:?}");
        let says = "WARN onus: a layer below retries these calls, and no declaration says so";
        assert!(logged.iter().all(|line| line.starts_with(says)), "{logged:?}");
    };
    check(false, &["claimed;attempt=1", "claimed", ""], 0);
    check(false, &["claimed;attempt=3", "claimed;attempt=2"], 1);
    check(true, &["claimed;attempt=3"], 0);
}

#[test]
fn a_switch_says_who_why_and_until_when() {
    // [shield-5]
    let lines = logged(Level::WARN, || {
        let service = Service::new(Mode::Observe, |_| {});
        // No file from the start is no switch.
        service.agent.switch_file(SwitchFile::Missing, service.now()).unwrap();
        let text = "mode: enforce 25%\nshield: 90s\nwho: alice\nwhy: incident 42\n";
        service.agent.switch_file(SwitchFile::new(text), service.now()).unwrap();
        service.agent.switch_file(SwitchFile::new("mode: nonsense"), service.now()).unwrap_err();
        let off = Switches { mode: Some(Mode::Off), who: "bob".into(), ..Switches::default() };
        service.agent.switch(Source::Admin, &off, service.now());
        service.agent.switch_file(SwitchFile::Missing, service.now()).unwrap();
    });
    assert_eq!(
        lines,
        [
            "WARN onus: switched service=a source=file mode=enforce mode_before=observe \
         share_basis_points=2500 shield_seconds=90 who=alice why=incident 42",
            "WARN onus: switched service=a source=admin mode=enforce mode_before=enforce \
         share_basis_points=2500 who=bob why=",
            "WARN onus: switched service=a source=file mode=off mode_before=enforce who= why=",
        ]
    );
}

#[test]
fn each_retry_made_and_not_made_has_its_reason() {
    // [decide-18] [wire-2]
    let lines = logged(Level::DEBUG, || {
        let service = Service::enforcing(|config| config.retry("b", retries(3)));
        let request = service.request();
        let replies = [
            Reply::Error("claimed;origin=\"d\";hops=0"),
            Reply::Silence,
            Reply::Error("unclaimed;origin=\"d\";hops=1"),
        ];
        request.call("b").play(&replies);
        request.error();
    });
    let calls: Vec<_> = lines.iter().filter(|line| line.contains("onus: call failed")).collect();
    let call = "DEBUG onus: call failed caller=a callee=b procedure=GET /out arm=enforce";
    assert_eq!(
        calls,
        [
            &format!(
                "{call} error=http-503 retry=open origin=d attempts=1 retried=true reason=claimed"
            ),
            &format!("{call} error=reset retry=open attempts=2 retried=true reason=silent"),
            &format!(
                "{call} error=http-503 retry=closed origin=d attempts=3 retried=false \
             reason=suppressed"
            ),
        ]
    );
}

#[test]
fn an_error_is_told_in_words_for_people() {
    // [wire-15]
    let told = |act: &dyn Fn(&Service)| {
        let lines = logged(Level::DEBUG, || {
            let service = Service::enforcing(|_| {});
            act(&service);
        });
        let told = lines.into_iter().filter(|line| line.contains("onus: answered"));
        told.collect::<Vec<_>>().join("\n")
    };
    let answered = "DEBUG onus: answered with an error service=a procedure=GET /in arm=enforce";
    let own = told(&|service| drop(service.request().error()));
    let said = "retry=open cause=self origin=a hops=0 reason=own";
    assert_eq!(own, format!("{answered} {said}"));
    let passed_on = told(&|service| {
        let request = service.request();
        request.call("b").play(&[Reply::Error("unclaimed;origin=\"d\";hops=1")]);
        request.error();
    });
    let said = "retry=closed cause=dependency origin=d hops=2 reason=suppressed";
    assert_eq!(passed_on, format!("{answered} {said}"));
    let shielded = told(&|service| {
        service.shield(Duration::from_secs(60));
        service.request().error();
    });
    let said = "retry=closed cause=unknown origin=a hops=0 reason=operator";
    assert_eq!(shielded, format!("{answered} {said}"));
    assert_eq!(told(&|service| drop(service.request().ok())), "", "a success says nothing");
}

/// What three minutes teach in which the calls to `b` and `c` fail alone, and their caller too.
fn learnt(configure: impl FnOnce(&mut onus_agent::AgentConfig)) -> Vec<String> {
    let lines = logged(Level::INFO, || {
        let service = Service::new(Mode::Observe, configure);
        for _ in 0..3 {
            for callee in ["b", "c"] {
                for _ in 0..30 {
                    let request = service.request();
                    request.call(callee).play(&[Reply::Error("claimed")]);
                    request.error();
                }
            }
            service.pass(Duration::from_secs(60));
            service.agent.tick(service.now());
        }
    });
    let of_classes = lines.into_iter().filter(|line| line.contains("callee="));
    of_classes.collect()
}

#[test]
fn a_class_that_changes_explains_itself() {
    // [class-11]
    let lines = learnt(|config| config.override_class("c", EdgeClass::Unknown));
    let [line] = &lines[..] else { panic!("{lines:#?}") };
    assert!(line.starts_with("INFO onus: edge class changed: fail-close"), "{line}");
    let edge = "caller=a caller_procedure=GET /in callee=b procedure=GET /out class=fail-close";
    assert!(line.ends_with(edge), "{line}");
}

#[test]
fn what_was_said_is_contradicted_once() {
    // [class-9] [class-10]
    for by_operator in [false, true] {
        let lines = learnt(|config| {
            config.override_class("b", EdgeClass::FailClose);
            if by_operator {
                config.override_class("c", EdgeClass::FailOpen);
            } else {
                config.annotate("c", Annotation::Optional);
            }
        });
        let [line] = &lines[..] else { panic!("{lines:#?}") };
        let message = "WARN onus: what is measured contradicts what was said: ";
        assert!(line.starts_with(message), "{line}");
        assert!(line.contains("callee=c"), "{line}");
    }
}

#[test]
fn probes_that_succeed_warn() {
    // [brake-1]
    let warned = |acts: bool| {
        logged(Level::WARN, || {
            let service = Service::new(Mode::Enforce(Share::ALL), |config| {
                config.retry("b", RetryPolicy::attempts(2).no_budget());
                if acts {
                    config.brake_acts("b");
                }
            });
            for _ in 0..60 {
                let request = service.request();
                request.call("b").play(&[Reply::Error("unclaimed"), Reply::Ok]);
                request.ok();
                service.pass(Duration::from_secs(10));
            }
        })
    };
    for acts in [false, true] {
        let message = "WARN onus: more than half of the suppressed retries would have succeeded";
        assert_eq!(warned(acts), [format!("{message} caller=a callee=b halved={acts}")]);
    }
}
