//! What is wrong costs nothing but itself, and is told with its place.

use onus_retry_config::{Import, Why};

use super::{check, read};

const GOOD: &str = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\n\
                    spec: {http: [{retries: {attempts: 1, retryOn: 5xx}, route: [{destination: {host: a}}]}]}\n";
const POLICY: &str = "anyone -> a any[]: 2 on 5xx";

#[test]
fn a_broken_document_costs_nothing_but_itself() {
    let helm = "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Values.name }}\n";
    let config =
        read(&format!("{helm}---\n{GOOD}---\n- [1, 2\n---\nhello: world\n---\njust text\n"));
    let told: Vec<_> = config.unread.iter().map(|it| (it.place.line, it.why.clone())).collect();
    let [helm, list, known, text] = &*told else { panic!("{told:?}") };
    assert!(matches!(helm, (4, Why::Syntax(_))), "{helm:?}");
    assert!(matches!(list, (10..=11, Why::Syntax(_))), "{list:?}");
    assert_eq!(*known, (13, Why::NothingKnown));
    assert_eq!(*text, (15, Why::NothingKnown));
    assert_eq!(config.policies.len(), 1);
}

#[test]
fn values_that_are_something_else_are_told() {
    let route = "route: [{destination: {host: a}}]";
    for (rule, policies, unread) in [
        (
            format!("{{retries: {{attempts: many, retryOn: 5xx}}, {route}}}"),
            vec!["anyone -> a any[]: 1 on 5xx"],
            vec!["spec.http[0].retries.attempts: a number is expected, not `many`; skipped"],
        ),
        (
            format!("{{retries: {{attempts: 2.5, retryOn: 5xx}}, {route}}}"),
            vec!["anyone -> a any[]: 1 on 5xx"],
            vec!["spec.http[0].retries.attempts: a count is expected, not `2.5`; skipped"],
        ),
        (
            format!("{{retries: {{attempts: 1, retryOn: [5xx]}}, {route}}}"),
            vec!["anyone -> a any[]: 2 on connect-failure,refused-stream,unavailable,cancelled"],
            vec!["spec.http[0].retries.retryOn: a word is expected, not a list; skipped"],
        ),
        (
            format!("{{retries: {{attempts: 1, retryOn: 5xx, perTryTimeout: 2}}, {route}}}"),
            vec!["anyone -> a any[]: 2 on 5xx"],
            vec![
                "spec.http[0].retries.perTryTimeout: a time such as 250ms is expected, not `2`; skipped",
            ],
        ),
        (
            format!("{{retries: {{attempts: 1, retryOn: 5xx, retryWhen: later}}, {route}}}"),
            vec!["anyone -> a any[]: 2 on 5xx"],
            vec!["spec.http[0].retries.retryWhen: a field that is not known; skipped"],
        ),
        (
            "{retries: {attempts: 1, retryOn: 5xx}, route: a}".to_owned(),
            vec!["anyone -> h any[]: 2 on 5xx"],
            vec!["spec.http[0].route: a list is expected, not `a`; skipped"],
        ),
        (
            format!("{{retries: {{attempts: 1}}, delegate: {{name: b}}, {route}}}"),
            vec![],
            vec!["spec.http[0].delegate: a delegate has its own retries; those here are not its"],
        ),
    ] {
        let config = read(&format!(
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: v}}\n\
             spec: {{hosts: [h], http: [{rule}]}}\n"
        ));
        let unread: Vec<_> =
            unread.iter().map(|told| format!("a.yaml:4: VirtualService v {told}")).collect();
        check(&config, &policies, &unread.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn kinds_that_are_not_followed_are_told_where_they_are_about_retries() {
    let config = read(
        "apiVersion: example.com/v1\nkind: Router\nmetadata: {name: r, namespace: n, \
         annotations: {note: no retries here}}\nspec:\n  routes:\n  - {to: a}\n  - to: b\n    \
         maxRetries: 3\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nstatus: \
         {retries: 1}\n",
    );
    check(
        &config,
        &[],
        &["a.yaml:8: Router n/r spec.routes[1].maxRetries: a kind that is not followed, with a \
           field about retries"],
    );
    assert_eq!(config.passed_over.iter().collect::<Vec<_>>(), [(&"Deployment".to_owned(), &1)]);
}

#[test]
fn aliases_and_nesting_are_bounded() {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (one, next) in "abcdefgh".chars().zip("bcdefghi".chars()) {
        let aliases = vec![format!("*{one}"); 10].join(", ");
        bomb.push_str(&format!("{next}: &{next} [{aliases}]\n"));
    }
    let deep = "[".repeat(200_000);
    let nested: String =
        (0..20_000).map(|depth| format!("{}a:\n", " ".repeat(depth % 500))).collect();
    for text in [bomb, deep, nested] {
        let config = read(&format!("{text}\n---\n{GOOD}"));
        assert_eq!(config.policies.len(), 1, "{:.80}", text);
        assert!(!config.unread.is_empty(), "{:.80}", text);
    }
}

#[test]
fn a_file_that_is_too_large_is_told() {
    let mut import = Import::default();
    import.read("large.yaml", &"#".repeat((64 << 20) + 1));
    import.read("a.yaml", GOOD);
    check(&import.finish(), &[POLICY], &["large.yaml:1: larger than 64 MiB; file skipped"]);
}

#[test]
fn half_of_a_file_at_every_byte_is_no_panic() {
    let whole = include_str!("../../../../docs/audit/mesh.yaml");
    for end in (0..whole.len()).step_by(7).filter(|&end| whole.is_char_boundary(end)) {
        let _ = read(&whole[..end]);
    }
}
