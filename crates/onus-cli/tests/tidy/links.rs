//! A relative link in a document leads to a file.

use super::{assert_tidy, checkout, markdown};

/// The targets of `[text](target)`, `![text](target)` and `[label]: target`, with their lines.
fn targets(text: &str) -> Vec<(usize, String)> {
    let prose = markdown::prose(text);
    let mut targets = Vec::new();
    for (index, line) in prose.lines().enumerate() {
        let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let label = line.trim_start().strip_prefix('[');
        let reference = label.and_then(|rest| Some(rest.split_once("]: ")?.1));
        targets.extend(
            inline
                .chain(reference)
                .filter_map(|target| target.split_whitespace().next())
                .map(|target| (index + 1, target.trim_matches(['<', '>']).to_owned())),
        );
    }
    targets
}

/// The file that a link names, from the root; `None` for the web and for places in the same document.
fn linked(from: &str, target: &str) -> Option<String> {
    let path = target.split(['#', '?']).next()?;
    if path.is_empty() || path.contains(':') {
        return None;
    }
    let (folder, _) = from.rsplit_once('/').unwrap_or_default();
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[test]
fn link_targets() {
    fn check(text: &str, expected: &[(usize, &str)]) {
        let found = targets(text);
        let found: Vec<_> = found.iter().map(|(line, t)| (*line, t.as_str())).collect();
        assert_eq!(found, expected, "{text}");
    }
    check("a [b](c.md) and ![d](e.png)\n", &[(1, "c.md"), (1, "e.png")]);
    check("\n[`x`](y.md \"title\")\n", &[(2, "y.md")]);
    check("[label]: ../z.md\n", &[(1, "../z.md")]);
    check("`[b](c.md)`\n```\n[d](e.md)\n```\n", &[]);
}

#[test]
fn link_resolution() {
    fn check(from: &str, target: &str, expected: Option<&str>) {
        assert_eq!(linked(from, target).as_deref(), expected, "{from} {target}");
    }
    check("README.md", "docs/a.md#part", Some("docs/a.md"));
    check("docs/adr/1.md", "../a.md", Some("docs/a.md"));
    check("docs/a.md", "./b.md", Some("docs/b.md"));
    check("docs/a.md", "../../b.md", Some("../b.md"));
    check("docs/a.md", "#part", None);
    check("docs/a.md", "https://example.com/a", None);
}

#[test]
fn links_lead_somewhere() {
    let mut complaints = Vec::new();
    for file in checkout::files(&[".md"]) {
        for (line, target) in targets(&file.text) {
            let Some(path) = linked(&file.path, &target) else {
                continue;
            };
            let outside = path.starts_with("..");
            if outside || !checkout::root().join(&path).exists() {
                complaints.push(format!(
                    "{}:{line}: `{target}` leads nowhere: there is no {path} in the checkout",
                    file.path
                ));
            }
        }
    }
    assert_tidy(&complaints);
}
