//! Lists of edges in CSV: `caller,callee` or `caller,callee,calls`, below a header.

use std::borrow::Cow;

use super::{EdgeList, ListedEdge, Place, calls, name};

pub(super) fn read(text: &str) -> EdgeList {
    let mut list = EdgeList::default();
    let lines = text.lines().enumerate().map(|(index, line)| (Place::Line(index + 1), line));
    let mut lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let (at, header) = lines.next().unwrap_or((Place::Line(1), ""));
    // A list without one would lose its first edge, a list with other columns be read the wrong way.
    if !is_header(header) {
        let header = name(header);
        list.refuse(at, format!("`{header}` is no header; allowed is caller,callee,calls"));
    }
    for (at, line) in lines {
        match edge(line) {
            Ok(edge) => list.add(at, edge),
            Err(why) => list.refuse(at, why),
        }
    }
    list
}

fn is_header(line: &str) -> bool {
    let mut fields = Fields { rest: Some(line.trim_start_matches('\u{feff}')) };
    ["caller", "callee"]
        .into_iter()
        .all(|column| fields.next().is_some_and(|field| field.eq_ignore_ascii_case(column)))
}

fn edge(line: &str) -> Result<ListedEdge, String> {
    let mut fields = Fields { rest: Some(line) };
    let (Some(caller), Some(callee)) = (fields.next(), fields.next()) else {
        return Err(format!("`{}` is no edge; allowed is caller,callee,calls", name(line)));
    };
    if caller.is_empty() || callee.is_empty() {
        return Err("a service without a name".to_owned());
    }
    let calls = match fields.next() {
        None => None,
        Some(text) => Some(text.parse().ok().and_then(calls).ok_or_else(|| {
            format!("`{}` is no number of calls; allowed is a number from 0 on", name(&text))
        })?),
    };
    Ok(ListedEdge { caller: name(&caller), callee: name(&callee), calls })
}

/// The fields of a line. One in quotes may contain commas, and quotes in twos.
struct Fields<'a> {
    rest: Option<&'a str>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Cow<'a, str>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.rest?.trim_start();
        let Some(quoted) = line.strip_prefix('"') else {
            let (field, rest) = match line.split_once(',') {
                Some((field, rest)) => (field, Some(rest)),
                None => (line, None),
            };
            self.rest = rest;
            return Some(field.trim_end().into());
        };
        let mut end = 0;
        while let Some(quote) = quoted[end..].find('"') {
            end += quote;
            if !quoted[end + 1..].starts_with('"') {
                break;
            }
            end += 2;
        }
        // A field whose quotes do not end takes the line.
        let (field, rest) = if quoted[end..].starts_with('"') {
            (&quoted[..end], &quoted[end + 1..])
        } else {
            (quoted, "")
        };
        self.rest = rest.split_once(',').map(|(_, rest)| rest);
        Some(field.replace("\"\"", "\"").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(caller: &str, callee: &str, calls: Option<f64>) -> ListedEdge {
        ListedEdge { caller: caller.to_owned(), callee: callee.to_owned(), calls }
    }

    #[test]
    fn lines_are_edges() {
        let text =
            "caller,callee,calls,failures\na, b ,40,7\n\nc,d\r\n\"x,\"\"y\"\"\",\"z\",1e3\n\"a";
        let list = read(text);
        let expected =
            [edge("a", "b", Some(40.0)), edge("c", "d", None), edge("x,\"y\"", "z", Some(1e3))];
        assert_eq!(list.edges, expected);
        assert_eq!(
            list.refused[0].to_string(),
            "line 6: `\"a` is no edge; allowed is caller,callee,calls"
        );
    }

    #[test]
    fn a_list_begins_with_its_header() {
        for header in ["caller,callee", "\n\u{feff}Caller, \"callee\",weight"] {
            let list = read(&format!("{header}\na,b\n"));
            assert_eq!(
                (list.edges, list.refused),
                (vec![edge("a", "b", None)], vec![]),
                "{header}"
            );
        }
        for (text, complaint) in [
            ("", "line 1: `` is no header; allowed is caller,callee,calls"),
            ("x,y\na,b\n", "line 1: `x,y` is no header; allowed is caller,callee,calls"),
            (
                "\ncallee,caller",
                "line 2: `callee,caller` is no header; allowed is caller,callee,calls",
            ),
        ] {
            let list = read(text);
            assert_eq!(
                (list.refused_in_all, list.refused[0].to_string()),
                (1, complaint.to_owned())
            );
        }
    }

    #[test]
    fn what_is_no_edge_is_refused_with_its_line() {
        for (line, complaint) in [
            ("a", "line 3: `a` is no edge; allowed is caller,callee,calls"),
            ("a,c,-1", "line 3: `-1` is no number of calls; allowed is a number from 0 on"),
            ("a,c,NaN", "line 3: `NaN` is no number of calls; allowed is a number from 0 on"),
            ("a,c,inf", "line 3: `inf` is no number of calls; allowed is a number from 0 on"),
            (",b", "line 3: a service without a name"),
        ] {
            let list = read(&format!("caller,callee\na,b\n{line}\nb,c\n"));
            assert_eq!(list.edges.len(), 2, "{line}");
            assert_eq!(list.refused[0].to_string(), complaint);
        }
    }
}
