//! The newcomer's walk from `main` to the system call, as documented, exists in the code.
//!
//! Names are resolved without types: a method is called on a value that is named for its type, in any
//! case of letters (`session.load(…)`, `self.backend.load(…)`). Between two stops the code may take
//! helpers, within the stop's own files.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::syntax::{Function, functions, segments};
use crate::tree::Tree;

const DOCUMENT: &str = "ARCHITECTURE.md";

/// One stop of the walk, and the call that leads to the next.
struct Stop {
    /// As the document names it.
    title: &'static str,
    /// The files, or directories, in which it and its helpers are.
    files: &'static [&'static str],
    owner: Option<&'static str>,
    of_trait: Option<&'static str>,
    name: &'static str,
    /// Type or module, and name, of what it must reach.
    reaches: (Option<&'static str>, &'static str),
}

const STOPS: [Stop; 5] = [
    Stop {
        title: "main",
        files: &["crates/pfmon/src/main.rs"],
        owner: None,
        of_trait: None,
        name: "main",
        reaches: (Some("stat"), "run"),
    },
    Stop {
        title: "cmd::stat::run",
        files: &["crates/pfmon/src/cmd/stat.rs", "crates/pfmon/src/cmd/stat/"],
        owner: None,
        of_trait: None,
        name: "run",
        reaches: (Some("Session"), "load"),
    },
    Stop {
        title: "Session::load",
        files: &["crates/perfmon/src/"],
        owner: Some("Session"),
        of_trait: None,
        name: "load",
        reaches: (Some("Backend"), "load"),
    },
    Stop {
        title: "<Linux as Backend>::load",
        files: &["crates/perfmon-linux/src/"],
        owner: Some("Linux"),
        of_trait: Some("Backend"),
        name: "load",
        reaches: (Some("Counter"), "open"),
    },
    Stop {
        title: "Counter::open",
        files: &["crates/perfmon-linux/src/"],
        owner: Some("Counter"),
        of_trait: None,
        name: "open",
        reaches: (None, "perf_event_open"),
    },
];
const END: &str = "perf_event_open";
const END_FILES: &str = "crates/perfmon-sys/src/";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = STOPS.iter().filter_map(|stop| stop.broken(tree)).collect();
    let ends = functions_in(tree, &[END_FILES]).iter().any(|(_, function)| function.name == END);
    if !ends {
        findings.push(Finding::new(
            END_FILES,
            1,
            format!("the walk breaks: there is no `{END}` here"),
        ));
    }
    let line = document_line();
    if !tree.text(DOCUMENT).is_some_and(|text| text.lines().any(|other| other.contains(&line))) {
        findings.push(Finding::new(DOCUMENT, 1, format!("lacks the walk, in one line: {line}")));
    }
    findings
}

/// The walk as the document must have it.
fn document_line() -> String {
    let titles = STOPS.iter().map(|stop| stop.title).chain([END]);
    titles.map(|title| format!("`{title}`")).collect::<Vec<_>>().join(" → ")
}

impl Stop {
    fn broken(&self, tree: &Tree) -> Option<Finding> {
        let Self { title, files, reaches: (on, name), .. } = self;
        let functions = functions_in(tree, files);
        let Some(start) = functions.iter().position(|(_, function)| self.is(function)) else {
            return Some(Finding::new(
                files[0],
                1,
                format!("the walk breaks: there is no `{title}` here"),
            ));
        };
        if reaches(&functions, start, |mention| mention.is(*on, name)) {
            return None;
        }
        let (path, function) = &functions[start];
        let what = match on {
            Some(on) => format!("a call of `{name}` on `{on}`"),
            None => format!("a call of `{name}`"),
        };
        let what = format!("the walk breaks: `{title}` does not reach {what}");
        Some(Finding::new(path, *function.lines.start(), what))
    }

    fn is(&self, function: &Function<'_>) -> bool {
        function.name == self.name
            && function.owner.as_deref() == self.owner
            && function.of_trait.as_deref() == self.of_trait
    }
}

fn functions_in<'t>(tree: &'t Tree, files: &[&str]) -> Vec<(&'t str, Function<'t>)> {
    let wanted = |path: &str| {
        files.iter().any(|file| path == *file || file.ends_with('/') && path.starts_with(file))
    };
    let sources = tree.sources().filter(|(path, _)| wanted(path));
    let found =
        sources.flat_map(|(path, file)| functions(file).into_iter().map(move |f| (path, f)));
    found.filter(|(_, function)| !function.is_test).collect()
}

/// Whether the function at `start` mentions what is sought, itself or through `functions`.
fn reaches(
    functions: &[(&str, Function<'_>)],
    start: usize,
    is_sought: impl Fn(&Mention) -> bool,
) -> bool {
    let mut seen = BTreeSet::from([start]);
    let mut pending = vec![start];
    while let Some(place) = pending.pop() {
        let caller = &functions[place].1;
        for mention in mentions(caller.body) {
            if is_sought(&mention) {
                return true;
            }
            let may_be = |&place: &usize| mention.may_be(&functions[place].1, caller);
            pending.extend((0..functions.len()).filter(may_be).filter(|place| seen.insert(*place)));
        }
    }
    false
}

/// A function that a body names, mostly to call it.
struct Mention {
    /// The path's segments, or the names in the receiver and the method's.
    names: Vec<String>,
    is_method: bool,
}

impl Mention {
    /// Whether this names `name` on a type, module or value called `on`.
    fn is(&self, on: Option<&str>, name: &str) -> bool {
        let Some((last, before)) = self.names.split_last() else { return false };
        last == name
            && on.is_none_or(|on| before.iter().any(|other| other.eq_ignore_ascii_case(on)))
    }

    /// Whether this may name `function`, if it stands in the body of `caller`.
    fn may_be(&self, function: &Function<'_>, caller: &Function<'_>) -> bool {
        let Some((last, before)) = self.names.split_last() else { return false };
        let on = before.last().map(String::as_str);
        *last == function.name
            && match on {
                Some("self" | "Self") if before.len() == 1 => function.owner == caller.owner,
                _ if self.is_method => function.owner.is_some() || function.of_trait.is_some(),
                Some(on) if on.starts_with(char::is_uppercase) => {
                    [&function.owner, &function.of_trait]
                        .iter()
                        .any(|name| name.as_deref() == Some(on))
                }
                _ => function.owner.is_none() && function.of_trait.is_none(),
            }
    }
}

fn mentions(body: &syn::Block) -> Vec<Mention> {
    let mut finder = MentionFinder(Vec::new());
    finder.visit_block(body);
    finder.0
}

struct MentionFinder(Vec<Mention>);

impl<'a> Visit<'a> for MentionFinder {
    fn visit_expr_path(&mut self, path: &'a syn::ExprPath) {
        self.0.push(Mention { names: segments(&path.path), is_method: false });
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let mut names = names_of(&call.receiver);
        names.push(call.method.to_string());
        self.0.push(Mention { names, is_method: true });
        visit::visit_expr_method_call(self, call);
    }

    // A function inside a function is one of its own.
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// The names along a receiver: `self`, `backend` of `self.backend`.
fn names_of(receiver: &syn::Expr) -> Vec<String> {
    let (inner, name) = match receiver {
        syn::Expr::Path(path) => return segments(&path.path),
        syn::Expr::Field(field) => match &field.member {
            syn::Member::Named(name) => (&field.base, Some(name.to_string())),
            syn::Member::Unnamed(_) => (&field.base, None),
        },
        syn::Expr::MethodCall(call) => (&call.receiver, Some(call.method.to_string())),
        syn::Expr::Call(call) => (&call.func, None),
        syn::Expr::Index(index) => (&index.expr, None),
        syn::Expr::Paren(paren) => (&paren.expr, None),
        syn::Expr::Reference(reference) => (&reference.expr, None),
        syn::Expr::Try(question) => (&question.expr, None),
        _ => return Vec::new(),
    };
    let mut names = names_of(inner);
    names.extend(name);
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    const TREE: [(&str, &str); 7] = [
        (
            "crates/pfmon/src/main.rs",
            "fn main() { dispatch() }\nfn dispatch() { cmd::stat::run(args) }",
        ),
        ("crates/pfmon/src/cmd/stat.rs", "pub fn run() -> R { target::count(&mut session) }"),
        (
            "crates/pfmon/src/cmd/stat/target.rs",
            "pub fn count() -> R { let loaded = session.load(target)?; Ok(loaded) }",
        ),
        (
            "crates/perfmon/src/session.rs",
            "impl<B: Backend> Session<B> {\n pub fn load(&mut self) { self.load_all() }\n \
             fn load_all(&mut self) { contexts.map(|context| self.backend.load(&plan)) } }",
        ),
        (
            "crates/perfmon-linux/src/backend.rs",
            "impl Backend for Linux { fn load(&mut self) { Group::open(plan); } }\n\
             impl Group { fn open() { places.iter().map(Counter::open) } }",
        ),
        (
            "crates/perfmon-linux/src/counter.rs",
            "impl Counter { fn open() -> R { perf_event_open(&attr).map(|fd| Self { fd }) } }",
        ),
        ("crates/perfmon-sys/src/perf_event.rs", "pub fn perf_event_open() {}"),
    ];

    /// What is found in the good tree after `old` became `new` in all its code.
    fn found_after(old: &str, new: &str) -> Vec<String> {
        let code = TREE.map(|(path, text)| (path, text.replace(old, new)));
        assert!(old.is_empty() || code.iter().zip(TREE).any(|(after, before)| after.1 != before.1));
        let document = format!("# Words\n\nThe walk: {}.\n", document_line());
        let mut files: Vec<_> = code.iter().map(|(path, text)| (*path, text.as_str())).collect();
        files.push((DOCUMENT, &document));
        found(check, &files)
    }

    /// Check that a walk through helpers, modules, closures and function values is found whole.
    #[test]
    fn whole_walk_is_found() {
        assert_eq!(found_after("", ""), [""; 0]);
    }

    /// Check that a renamed function breaks the walk where it was and where it was called.
    #[test]
    fn renamed_function_is_found() {
        let at = "crates/pfmon/src/main.rs:1: the walk breaks";
        let expected = [
            format!("{at}: `main` does not reach a call of `run` on `stat`"),
            "crates/pfmon/src/cmd/stat.rs:1: the walk breaks: there is no `cmd::stat::run` here"
                .into(),
        ];
        assert_eq!(found_after("run", "start"), expected);
        let expected = [
            "crates/perfmon-linux/src/counter.rs:1: the walk breaks: `Counter::open` does not reach a \
             call of `perf_event_open`",
            "crates/perfmon-sys/src/:1: the walk breaks: there is no `perf_event_open` here",
        ];
        assert_eq!(found_after("perf_event_open", "open_event"), expected);
    }

    /// Check that each stop is noticed when it takes another way or another name.
    #[test]
    fn each_stop_is_noticed() {
        let changes = [
            ("session.load(", "session.attach(", "`cmd::stat::run` does not reach"),
            ("session.load(", "flag.load(", "`cmd::stat::run` does not reach"),
            ("fn load(&mut self) { self", "fn attach(&mut self) { self", "no `Session::load`"),
            ("self.load_all()", "self.prepare()", "`Session::load` does not reach"),
            ("self.backend", "context", "`Session::load` does not reach"),
            ("Backend for Linux", "Backend for Kernel", "no `<Linux as Backend>::load`"),
            ("Group::open(plan)", "Pool::open(plan)", "`<Linux as Backend>::load` does not reach"),
            ("impl Counter", "impl Event", "no `Counter::open`"),
        ];
        for (old, new, expected) in changes {
            let found = found_after(old, new);
            assert_eq!(found.len(), 1, "{old} → {new}: {found:?}");
            assert!(found[0].contains(expected), "{old} → {new}: {found:?}");
        }
    }

    /// Check that a call in a test does not stand in for one in the product.
    #[test]
    fn tests_are_no_part_of_the_walk() {
        let found = found_after("impl Group", "#[cfg(test)] mod tests { fn x() {} } impl Unused");
        assert_eq!(found.len(), 1, "{found:?}");
        let found = found_after("pub fn count()", "#[cfg(test)]\npub fn count()");
        assert!(found[0].contains("`cmd::stat::run` does not reach"), "{found:?}");
    }

    /// Check that a document without the walk in one line is found.
    #[test]
    fn document_without_the_walk_is_found() {
        let document = document_line().replace(" → `Session", "\n→ `Session");
        let found = found(check, &[&TREE[..], &[(DOCUMENT, &document)]].concat());
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("ARCHITECTURE.md:1: lacks the walk, in one line: `main` → "));
    }
}
