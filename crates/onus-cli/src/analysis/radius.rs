//! `onus radius` and `onus graph`: how far a retry storm may reach.

use std::fmt::Write;

use onus_api::{GraphPage, Radius, RadiusPage};

use super::{block_on, json, nothing, print, tell, whole};
use crate::cli::{Drawing, GraphOptions, Output, RadiusOptions, Server};
use crate::exit::Refused;
use crate::table;

pub(crate) fn radius(options: &RadiusOptions) -> anyhow::Result<()> {
    let RadiusOptions { service, watch, server, output } = options;
    super::watch(*watch, *output, || {
        let page = onus_analysis::radius(&block_on(mesh(server))?, service.as_deref());
        if let (Some(service), true) = (service, page.services.is_empty()) {
            return Err(Refused(format!(
                "no service {service} is known; `onus graph` shows those that are"
            ))
            .into());
        }
        Ok(match output {
            Output::Table => {
                tell(&page.missing);
                if page.services.is_empty() {
                    nothing("no calls between services are known");
                }
                render(&page)
            }
            Output::Json => json(&page)?,
        })
    })
}

/// The graph of all analyses.
async fn mesh(server: &Server) -> anyhow::Result<GraphPage> {
    whole(server, async |client| client.get("/api/v1/graph", &[]).await).await
}

fn render(page: &RadiusPage) -> String {
    let rows = page.services.iter().map(|it| {
        let Radius { service, without, now, everywhere, .. } = it;
        [
            service.clone(),
            without.radius.to_string(),
            now.radius.to_string(),
            everywhere.radius.to_string(),
            format!("{:.0}", without.amplification),
            format!("{:.0}", now.amplification),
            format!("{:.0} %", 100.0 / now.amplification),
            now.path.join(" \u{2192} "),
        ]
    });
    let header = [
        "SERVICE",
        ">WITHOUT",
        ">NOW",
        ">EVERYWHERE",
        ">AMPLIFICATION WITHOUT",
        ">NOW",
        ">RECOVERS BELOW",
        "WORST PATH",
    ];
    let mut text = table::render(header, rows);
    if page.services.is_empty() {
        return text;
    }
    let of = |radius: fn(&Radius) -> u32| page.services.iter().map(radius);
    let count = page.services.len().max(1) as f64;
    let mean = |radius: fn(&Radius) -> u32| of(radius).map(f64::from).sum::<f64>() / count;
    let most = |radius: fn(&Radius) -> u32| of(radius).max().unwrap_or(0);
    let [without, now] = [|it: &Radius| it.without.radius, |it: &Radius| it.now.radius];
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\nRadius: maximum {} \u{2192} {}, mean {:.1} \u{2192} {:.1}. Several culprits, and hangs, exceed it.\n\
         A service recovers by itself from overload while its load is below the share given.\n",
        most(without),
        most(now),
        mean(without),
        mean(now),
    );
    for it in &page.services {
        if !it.now.unbounded_through.is_empty() {
            let through = it.now.unbounded_through.join(", ");
            let _ = writeln!(
                text,
                "{}: calls lead round in a circle, unbounded through {through}",
                it.service
            );
        }
        for advice in &it.advice {
            let _ = writeln!(text, "{}: {advice}", it.service);
        }
    }
    text
}

pub(crate) fn graph(options: &GraphOptions) -> anyhow::Result<()> {
    let page = block_on(mesh(&options.server))?;
    print(&match options.output {
        Drawing::Json => json(&page)?,
        Drawing::Dot => {
            tell(&page.missing);
            dot(&page)
        }
        Drawing::Mermaid => {
            tell(&page.missing);
            mermaid(&page)
        }
    })
}

fn dot(page: &GraphPage) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut text = String::from("digraph onus {\n  rankdir=LR;\n  node [shape=box];\n");
    for (service, coverage) in &page.services {
        let _ = writeln!(text, "  {} [tooltip={}];", quoted(service), quoted(coverage));
    }
    for edge in &page.edges {
        let label = quoted(&format!("{} \u{d7}{}", edge.class, edge.attempts));
        let style = if edge.class == "fail-open" { ", style=dashed" } else { "" };
        let _ = writeln!(
            text,
            "  {} -> {} [label={label}{style}];",
            quoted(&edge.caller),
            quoted(&edge.callee)
        );
    }
    text + "}\n"
}

fn mermaid(page: &GraphPage) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "#quot;"));
    let number =
        |name: &str| page.services.iter().position(|(service, _)| service == name).unwrap_or(0);
    let mut text = String::from("flowchart LR\n");
    for (service, _) in &page.services {
        let _ = writeln!(text, "  s{}[{}]", number(service), quoted(service));
    }
    for edge in &page.edges {
        let arrow = if edge.class == "fail-open" { "-.->" } else { "-->" };
        let label = quoted(&format!("{} x{}", edge.class, edge.attempts));
        let _ = writeln!(
            text,
            "  s{} {arrow}|{label}| s{}",
            number(&edge.caller),
            number(&edge.callee)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use onus_api::GraphEdge;

    use super::*;

    #[test]
    fn hostile_names_stay_inside_their_quotes() {
        let page = GraphPage {
            services: vec![
                ("a\"]; x".to_owned(), "enforcing".to_owned()),
                ("b".to_owned(), String::new()),
            ],
            edges: vec![GraphEdge {
                caller: "a\"]; x".to_owned(),
                callee: "b".to_owned(),
                attempts: 2,
                class: "fail-open".to_owned(),
                ..GraphEdge::default()
            }],
            ..GraphPage::default()
        };
        assert!(
            dot(&page)
                .contains("\"a\\\"]; x\" -> \"b\" [label=\"fail-open \u{d7}2\", style=dashed];"),
            "{}",
            dot(&page)
        );
        assert!(mermaid(&page).contains("s0[\"a#quot;]; x\"]\n"), "{}", mermaid(&page));
        assert!(mermaid(&page).contains("s0 -.->|\"fail-open x2\"| s1"), "{}", mermaid(&page));
    }
}
