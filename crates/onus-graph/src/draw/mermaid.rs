//! For Markdown.

use std::fmt::Write;

use onus_learn::MeasuredClass;

use super::{Drawing, paint};

impl Drawing {
    /// The picture as a Mermaid flowchart.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut text = String::from("flowchart LR\n");
        // Writing to a string cannot fail.
        for (number, name) in self.services.iter().enumerate() {
            let _ = writeln!(text, "  s{number}[\"{}\"]", escaped(name));
        }
        for line in &self.lines {
            let arrow = match (line.look.class, line.on_way) {
                (MeasuredClass::FailOpen, _) => "-.->",
                (_, true) => "==>",
                (_, false) => "-->",
            };
            let _ = write!(text, "  s{} {arrow}", line.caller);
            if !line.look.label.is_empty() {
                let _ = write!(text, "|\"{}\"|", escaped(&line.look.label));
            }
            let _ = writeln!(text, " s{}", line.callee);
        }
        for (number, line) in self.lines.iter().enumerate() {
            let (_, colour) = paint(line.look.class);
            let _ = writeln!(text, "  linkStyle {number} stroke:{colour}");
        }
        text
    }
}

/// Mermaid knows characters by their numbers; a quote or a bracket would end the text.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '"' | '#' | '&' | '<' | '>' | ';' | '`' | '|' | '[' | ']') {
            let _ = write!(escaped, "#{};", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use crate::draw::tests::example;

    #[test]
    fn is_what_mermaid_reads() {
        assert_eq!(
            example(9).mermaid(),
            r##"flowchart LR
  s0["A #60;#34;1#34;#62;"]
  s1["B"]
  s2["C"]
  s3["D"]
  s4["E"]
  s0 ==> s1
  s0 -.-> s3
  s1 -->|"P 0.90 #38; more"| s2
  linkStyle 0 stroke:#c2921d
  linkStyle 1 stroke:#3a9d5d
  linkStyle 2 stroke:#d9483b
"##
        );
    }
}
