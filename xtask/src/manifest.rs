use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What we need of a `Cargo.toml`.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// The package's name; `None` for a workspace without a package.
    pub(crate) package: Option<String>,
    /// All dependencies, in the order of the tables below.
    pub(crate) dependencies: Vec<Dependency>,
}

/// One line of a dependency table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    /// The crate's real name.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) line: usize,
}

/// What a dependency is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The crate itself or its build script.
    Product,
    /// Its tests, examples and benches.
    Dev,
    /// Declared in the workspace for its members.
    Workspace,
}

const TABLES: [(&str, Kind); 3] = [
    ("dependencies", Kind::Product),
    ("build-dependencies", Kind::Product),
    ("dev-dependencies", Kind::Dev),
];

impl Manifest {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let document = DeTable::parse(text).map_err(|error| error.message().to_owned())?;
        let document = document.get_ref();
        let package = table(document, "package").and_then(|package| string(package, "name"));
        let mut manifest = Self { package, dependencies: Vec::new() };
        for (name, kind) in TABLES {
            manifest.add(text, table(document, name), kind);
            for target in table(document, "target").into_iter().flat_map(DeTable::values) {
                let target = target.get_ref().as_table();
                manifest.add(text, target.and_then(|target| table(target, name)), kind);
            }
        }
        let workspace = table(document, "workspace");
        let shared = workspace.and_then(|workspace| table(workspace, "dependencies"));
        manifest.add(text, shared, Kind::Workspace);
        Ok(manifest)
    }

    fn add(&mut self, text: &str, dependencies: Option<&DeTable<'_>>, kind: Kind) {
        for (key, value) in dependencies.into_iter().flatten() {
            let renamed = value.get_ref().as_table().and_then(|value| string(value, "package"));
            let name = renamed.unwrap_or_else(|| key.get_ref().to_string());
            self.dependencies.push(Dependency { name, kind, line: line_of(text, key) });
        }
    }
}

fn table<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> Option<&'t DeTable<'i>> {
    table.get(key)?.get_ref().as_table()
}

fn string(table: &DeTable<'_>, key: &str) -> Option<String> {
    table.get(key).map(Spanned::get_ref).and_then(DeValue::as_str).map(str::to_owned)
}

fn line_of<T>(text: &str, item: &Spanned<T>) -> usize {
    text[..item.span().start].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that every kind of table is read, with the line, and the real name of a renamed crate.
    #[test]
    fn reads_all_tables() {
        let manifest = Manifest::parse(
            "[package]\nname = \"p\"\n\
             [dependencies]\na.workspace = true\nx = { package = \"b\", version = \"1\" }\n\
             [dev-dependencies.c]\nversion = \"1\"\n\
             [target.'cfg(unix)'.build-dependencies]\nd = \"1\"\n\
             [workspace.dependencies]\ne = \"1\"\n",
        )
        .unwrap();
        assert_eq!(manifest.package.as_deref(), Some("p"));
        let found: Vec<_> =
            manifest.dependencies.iter().map(|d| (d.name.as_str(), d.kind, d.line)).collect();
        let expected = [
            ("a", Kind::Product, 4),
            ("b", Kind::Product, 5),
            ("d", Kind::Product, 9),
            ("c", Kind::Dev, 6),
            ("e", Kind::Workspace, 11),
        ];
        assert_eq!(found, expected);
    }

    /// Check that bad TOML is an error.
    #[test]
    fn refuses_bad_toml() {
        assert!(Manifest::parse("[package\nname = 1").is_err());
    }
}
