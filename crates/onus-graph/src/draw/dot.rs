//! For Graphviz.

use std::fmt::Write;

use onus_learn::MeasuredClass;

use super::{Drawing, paint};

impl Drawing {
    /// The picture for `dot -Tsvg`.
    #[must_use]
    pub fn dot(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "digraph {} {{\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n  \
             edge [fontname=\"sans-serif\", fontsize=10];\n",
            quoted(&self.title)
        );
        for (number, name) in self.services.iter().enumerate() {
            let _ = writeln!(text, "  s{number} [label={}];", quoted(name));
        }
        for line in &self.lines {
            let (_, colour) = paint(line.look.class);
            let _ = write!(text, "  s{} -> s{} [color=\"{colour}\"", line.caller, line.callee);
            if !line.look.label.is_empty() {
                let _ = write!(text, ", label={}", quoted(&line.look.label));
            }
            if line.look.class == MeasuredClass::FailOpen {
                text.push_str(", style=dashed");
            }
            text.push_str(if line.on_way { ", penwidth=3];\n" } else { "];\n" });
        }
        text.push_str("}\n");
        text
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use crate::draw::tests::example;

    #[test]
    fn is_what_graphviz_reads() {
        assert_eq!(
            example(9).dot(),
            r##"digraph "Calls & storms" {
  rankdir=LR;
  node [shape=box, fontname="sans-serif"];
  edge [fontname="sans-serif", fontsize=10];
  s0 [label="A <\"1\">"];
  s1 [label="B"];
  s2 [label="C"];
  s3 [label="D"];
  s4 [label="E"];
  s0 -> s1 [color="#c2921d", penwidth=3];
  s0 -> s3 [color="#3a9d5d", style=dashed];
  s1 -> s2 [color="#d9483b", label="P 0.90 & more"];
}
"##
        );
    }
}
