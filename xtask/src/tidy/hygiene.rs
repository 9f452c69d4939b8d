//! Nothing half-done, skipped, or bound to one machine.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::finding::Finding;
use crate::syntax::test_lines;
use crate::tree::{Tree, crate_of, is_tests};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, file) in tree.sources() {
        let tests = test_lines(file);
        let is_product = crate_of(path).is_some() && path.contains("/src/") && !is_tests(path);
        for (line, what) in left_behind(tree.text(path).unwrap_or_default()) {
            let is_tested_by = || !is_product || tests.iter().any(|lines| lines.contains(&line));
            if what != UNWRAP || !is_tested_by() {
                findings.push(Finding::new(path, line, what));
            }
        }
    }
    for (path, text) in tree.texts() {
        let lines = (1..).zip(text.lines());
        let homes = lines.filter_map(|(number, line)| Some((number, home_path(line)?)));
        findings.extend(homes.map(|(number, home)| {
            Finding::new(path, number, format!("{home} is a place on one machine only"))
        }));
    }
    findings
}

const UNWRAP: &str = "`.unwrap()` outside tests: give an error, or `expect` with the reason";
const IGNORE: &str = "`#[ignore]`: a test finds out at run time what it lacks, and prints it";

/// Tokens that must not stay, with their lines.
fn left_behind(text: &str) -> Vec<(usize, &'static str)> {
    let mut tokens = Vec::new();
    flatten(text.parse().unwrap_or_default(), &mut tokens);
    let at = |place: usize| tokens.get(place).map_or("", |(_, token)| token.as_str());
    let what = |place: usize| match [0, 1, 2, 3].map(|step| at(place + step)) {
        ["todo", "!", "(" | "[" | "{", _] => Some("`todo!`"),
        ["unimplemented", "!", "(" | "[" | "{", _] => Some("`unimplemented!`"),
        ["dbg", "!", "(" | "[" | "{", _] => Some("`dbg!`"),
        [".", "unwrap", "(", ")"] => Some(UNWRAP),
        ["#", "[", "ignore", _] => Some(IGNORE),
        ["#", "[", "cfg_attr", _] => {
            let rest = tokens[place..].iter().take_while(|(_, token)| token != "]");
            rest.map(|(_, token)| token).any(|token| token == "ignore").then_some(IGNORE)
        }
        _ => None,
    };
    (0..tokens.len()).filter_map(|place| Some((tokens[place].0, what(place)?))).collect()
}

/// The tokens with their lines, brackets among them.
fn flatten(stream: TokenStream, tokens: &mut Vec<(usize, String)>) {
    for token in stream {
        let TokenTree::Group(group) = token else {
            tokens.push((token.span().start().line, token.to_string()));
            continue;
        };
        let [open, close] = match group.delimiter() {
            Delimiter::Parenthesis => ["(", ")"],
            Delimiter::Bracket => ["[", "]"],
            Delimiter::Brace => ["{", "}"],
            Delimiter::None => ["", ""],
        };
        tokens.push((group.span_open().start().line, open.to_owned()));
        flatten(group.stream(), tokens);
        tokens.push((group.span_close().start().line, close.to_owned()));
    }
}

/// A path below somebody's home directory.
fn home_path(line: &str) -> Option<&str> {
    ["/root/", "/home/"].iter().find_map(|home| {
        let (start, _) = line.match_indices(home).find(|&(start, _)| {
            let is_root =
                !line[..start].ends_with(|c: char| c.is_alphanumeric() || "._-~}".contains(c));
            let rest = &line[start + home.len()..];
            is_root && rest.starts_with(|c: char| c.is_alphanumeric() || "._".contains(c))
        })?;
        let rest = &line[start..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && !"/._-".contains(c));
        Some(&rest[..end.unwrap_or(rest.len())])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    /// Check that what is half-done is found, also inside macros, but not in text.
    #[test]
    fn half_done_is_found() {
        let text = "fn a() { todo!() }\nfn b() { print(vec![unimplemented!(\"b\")]) }\n\
                    fn c() { assert!(dbg!(true)) }\n// todo!()\nconst D: &str = \"todo!()\";\n";
        let expected = ["x/a.rs:1: `todo!`", "x/a.rs:2: `unimplemented!`", "x/a.rs:3: `dbg!`"];
        assert_eq!(found(check, &[("x/a.rs", text)]), expected);
    }

    /// Check that an ignored test is found, plain, with a reason, or by condition.
    #[test]
    fn ignored_test_is_found() {
        let text = "#[ignore]\nfn a() {}\n#[ignore = \"slow\"]\nfn b() {}\n\
                    #[cfg_attr(miri, ignore)]\nfn c() {}\n#[cfg_attr(miri, test)]\nfn d(ignore: u8) {}\n";
        let lines = [1, 3, 5].map(|line| format!("x/a.rs:{line}: {IGNORE}"));
        assert_eq!(found(check, &[("x/a.rs", text)]), lines);
    }

    /// Check that `unwrap` is found in the product and left alone in tests.
    #[test]
    fn unwrap_is_found_outside_tests() {
        let text = "fn a() { b().unwrap() }\nfn c() { b().unwrap_or(1) }\n\
                    #[cfg(test)]\nmod tests { fn d() { a().unwrap() } }\n";
        let files = [
            ("crates/a/src/lib.rs", text),
            ("crates/a/src/lib/tests.rs", text),
            ("crates/a/tests/all.rs", text),
            ("xtask/src/main.rs", text),
        ];
        assert_eq!(found(check, &files), [format!("crates/a/src/lib.rs:1: {UNWRAP}")]);
    }

    /// Check that a path into a home is found in any text, and what only looks like one is not.
    #[test]
    fn home_path_is_found() {
        let [root, home] = ["/root", "/home"];
        let text = format!("fine\nsee {root}/notes.md, then\n`{home}/someone/x`\n");
        let expected = [
            format!("a.md:2: {root}/notes.md is a place on one machine only"),
            format!("a.md:3: {home}/someone/x is a place on one machine only"),
        ];
        assert_eq!(found(check, &[("a.md", &text)]), expected);
        let fine = format!("{home}/ {root}/<name> example.org{home}/page $ROOT{root}\n");
        assert_eq!(found(check, &[("a.md", &fine)]), [""; 0]);
    }
}
