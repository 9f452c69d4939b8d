use std::ops::RangeInclusive;

use syn::visit::{self, Visit};

/// A function or method with a body.
pub(crate) struct Function<'a> {
    /// The type it belongs to.
    pub(crate) owner: Option<String>,
    /// The trait it is part of.
    pub(crate) of_trait: Option<String>,
    pub(crate) name: String,
    /// From `fn` to the closing brace; attributes and documentation are not counted.
    pub(crate) lines: RangeInclusive<usize>,
    /// Whether it is under `#[cfg(test)]`.
    pub(crate) is_test: bool,
    pub(crate) body: &'a syn::Block,
}

/// All functions of a file, also those inside modules and other functions.
pub(crate) fn functions(file: &syn::File) -> Vec<Function<'_>> {
    let mut finder = FunctionFinder::default();
    finder.visit_file(file);
    finder.found
}

/// The lines of a file's `#[cfg(test)] mod … { … }`, attribute included.
pub(crate) fn test_lines(file: &syn::File) -> Vec<RangeInclusive<usize>> {
    let test_module = |item: &syn::Item| match item {
        syn::Item::Mod(module) if is_cfg_test(&module.attrs) => {
            let first = module.attrs.first()?.pound_token.span.start().line;
            let last = module.content.as_ref()?.0.span.close().end().line;
            Some(first..=last)
        }
        _ => None,
    };
    file.items.iter().filter_map(test_module).collect()
}

/// The names of a path's segments.
pub(crate) fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// The last name of a type's path: `Session` of `perfmon::Session<B>`.
pub(crate) fn type_name(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Path(path) => segments(&path.path).pop(),
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => None,
    }
}

fn is_cfg_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|predicate| predicate == "test")
    })
}

#[derive(Default)]
struct FunctionFinder<'a> {
    owner: Option<String>,
    of_trait: Option<String>,
    is_test: bool,
    found: Vec<Function<'a>>,
}

impl<'a> FunctionFinder<'a> {
    fn add(
        &mut self,
        attributes: &[syn::Attribute],
        signature: &syn::Signature,
        body: &'a syn::Block,
    ) {
        let first = signature.fn_token.span.start().line;
        let last = body.brace_token.span.close().end().line;
        self.found.push(Function {
            owner: self.owner.clone(),
            of_trait: self.of_trait.clone(),
            name: signature.ident.to_string(),
            lines: first..=last,
            is_test: self.is_test || is_cfg_test(attributes),
            body,
        });
    }

    /// Visits what lies inside an item that gives its functions an owner.
    fn within(
        &mut self,
        owner: Option<String>,
        of_trait: Option<String>,
        visit: impl FnOnce(&mut Self),
    ) {
        let outer = (self.owner.take(), self.of_trait.take());
        (self.owner, self.of_trait) = (owner, of_trait);
        visit(self);
        (self.owner, self.of_trait) = outer;
    }
}

impl<'a> Visit<'a> for FunctionFinder<'a> {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        let outer = self.is_test;
        self.is_test |= is_cfg_test(&module.attrs);
        visit::visit_item_mod(self, module);
        self.is_test = outer;
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let of_trait = item.trait_.as_ref().and_then(|(path, _)| segments(path).pop());
        self.within(type_name(&item.self_ty), of_trait, |finder| {
            visit::visit_item_impl(finder, item);
        });
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        let name = item.ident.to_string();
        self.within(None, Some(name), |finder| {
            visit::visit_item_trait(finder, item);
        });
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.within(None, None, |finder| {
            finder.add(&function.attrs, &function.sig, &function.block);
            visit::visit_item_fn(finder, function);
        });
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.add(&function.attrs, &function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.add(&function.attrs, &function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that functions are found wherever they stand, with owner, trait and lines.
    #[test]
    fn finds_functions() {
        let file = syn::parse_file(
            "/// Doc.\npub fn free() {\n    fn inner() {}\n}\n\
             impl<B> Session<B> { fn load(&self) { fn helper() {} } }\n\
             impl core::Backend for Linux { fn load() {} }\n\
             trait Named { fn required(); fn given() {} }\n\
             #[cfg(test)]\nmod tests { fn check() {} }\n",
        )
        .unwrap();
        let found: Vec<String> = functions(&file)
            .iter()
            .map(|f| {
                let owner = f.owner.as_deref().unwrap_or("-");
                let of_trait = f.of_trait.as_deref().unwrap_or("-");
                format!("{owner} {of_trait} {} {:?} {}", f.name, f.lines, f.is_test)
            })
            .collect();
        let expected = [
            "- - free 2..=4 false",
            "- - inner 3..=3 false",
            "Session - load 5..=5 false",
            "- - helper 5..=5 false",
            "Linux Backend load 6..=6 false",
            "- Named given 7..=7 false",
            "- - check 9..=9 true",
        ];
        assert_eq!(found, expected);
    }

    /// Check that a test module's lines include its attribute, and that other modules have none.
    #[test]
    fn finds_test_lines() {
        let file = syn::parse_file("mod a {}\n\n#[cfg(test)]\nmod tests {\n}\n").unwrap();
        assert_eq!(test_lines(&file), [3..=5]);
    }
}
