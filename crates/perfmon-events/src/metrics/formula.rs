//! Formulas: text to a tree, and its value. No text and no numbers may panic, or recurse deeper than
//! [`DEPTH_MAX`] allows.

use std::fmt;
use std::ops::Range;

/// Longest formula, in bytes.
const LENGTH_MAX: usize = 4096;
/// Most parentheses, signs and functions inside each other.
const DEPTH_MAX: usize = 64;
/// Most characters of the formula that a message repeats.
const FOUND_CHARS: usize = 40;

const OPERAND: &str = "a number, a variable or '('";
const OPERATOR: &str = "an operator or the end of the formula";

/// Names that are functions of two arguments.
pub(super) const FUNCTIONS: [(&str, Function); 2] =
    [("min", Function::Least), ("max", Function::Greatest)];

/// A formula over variables: `+ - * /`, a sign, parentheses, `min(a, b)`, `max(a, b)`, and numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    text: String,
    root: Node,
    /// The variables, in the order in which they first appear.
    variables: Vec<Variable>,
}

/// A variable of a formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Variable {
    pub(super) name: String,
    /// Where it first appears: a byte offset.
    pub(super) position: usize,
}

/// Why text is no formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FormulaError {
    expected: String,
    found: String,
    /// The character at which it is, from 1.
    column: usize,
}

/// Which names a formula may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Letters, digits and `_`.
    Own,
    /// Those of counters, with their options: `PMC3:EDGEDETECT:THRESHOLD=0x1`.
    Likwid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Least,
    Greatest,
}

/// A part of a formula.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Number(f64),
    /// Its place among the formula's variables.
    Variable(usize),
    Negated(Box<Node>),
    /// Operators that apply one after the other, each to what is before it. A sum of a thousand
    /// counters is no deeper than one of two.
    Chain(Box<Node>, Vec<Link>),
    Call(Function, Box<[Node; 2]>),
}

/// An operator, and what is right of it.
#[derive(Clone, Debug, PartialEq)]
struct Link {
    operator: Operator,
    right: Node,
    /// Where the right side is in the text.
    span: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Operator {
    /// How strongly it binds.
    fn power(self) -> u8 {
        match self {
            Self::Add | Self::Subtract => 1,
            Self::Multiply | Self::Divide => 2,
        }
    }
}

impl Formula {
    /// Reads a formula. Which variables exist is the caller's to check.
    pub(super) fn parse(text: &str, dialect: Dialect) -> Result<Self, FormulaError> {
        if text.len() > LENGTH_MAX {
            let found = format!("{} bytes", text.len());
            let expected = format!("at most {LENGTH_MAX} bytes");
            return Err(FormulaError { expected, found, column: 1 });
        }
        let mut parser =
            Parser { text, dialect, position: 0, end: 0, depth: 0, variables: Vec::new() };
        parser.skip_white_space();
        let root = parser.expression(0)?;
        if parser.position < text.len() {
            return Err(parser.error_here(OPERATOR));
        }
        Ok(Self { text: text.to_owned(), root, variables: parser.variables })
    }

    /// The formula as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names of its variables, in the order in which they first appear.
    pub fn variables(&self) -> impl ExactSizeIterator<Item = &str> {
        self.variables.iter().map(|variable| variable.name.as_str())
    }

    pub(super) fn variables_at(&self) -> &[Variable] {
        &self.variables
    }

    /// Calls the variable `old` `new`.
    pub(super) fn rename(&mut self, old: &str, new: &str) {
        for variable in self.variables.iter_mut().filter(|variable| variable.name == old) {
            new.clone_into(&mut variable.name);
        }
    }

    /// That `expected` is missing where a variable first appears.
    pub(super) fn error_at(&self, variable: &Variable, expected: &str) -> FormulaError {
        FormulaError::new(&self.text, variable.position, expected, &variable.name)
    }

    /// Its value, given those of its variables in their order; or why it has none.
    pub(super) fn value(&self, values: &[f64]) -> Result<f64, String> {
        for (variable, value) in self.variables.iter().zip(values) {
            if !value.is_finite() {
                return Err(format!("'{}' is no finite number", variable.name));
            }
        }
        self.value_of(&self.root, values)
    }

    fn value_of(&self, node: &Node, values: &[f64]) -> Result<f64, String> {
        match node {
            Node::Number(number) => Ok(*number),
            Node::Variable(place) => {
                let value = values.get(*place).copied();
                value.ok_or_else(|| "a variable has no value".to_owned())
            }
            Node::Negated(node) => Ok(-self.value_of(node, values)?),
            Node::Chain(first, links) => {
                links.iter().try_fold(self.value_of(first, values)?, |left, link| {
                    self.link(left, link, values)
                })
            }
            Node::Call(function, arguments) => {
                let [a, b] = arguments.as_ref();
                let (a, b) = (self.value_of(a, values)?, self.value_of(b, values)?);
                Ok(match function {
                    Function::Least => a.min(b),
                    Function::Greatest => a.max(b),
                })
            }
        }
    }

    fn link(&self, left: f64, link: &Link, values: &[f64]) -> Result<f64, String> {
        let right = self.value_of(&link.right, values)?;
        let written = || self.text.get(link.span.clone()).unwrap_or_default();
        let result = match link.operator {
            Operator::Add => left + right,
            Operator::Subtract => left - right,
            Operator::Multiply => left * right,
            Operator::Divide if right == 0.0 => return Err(format!("'{}' is 0", written())),
            Operator::Divide => left / right,
        };
        if result.is_finite() {
            Ok(result)
        } else {
            Err(format!("the result at '{}' is too large for a number", written()))
        }
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FormulaError {
    fn new(text: &str, position: usize, expected: &str, found: &str) -> Self {
        let column = text.get(..position).unwrap_or(text).chars().count() + 1;
        let found = found.chars().take(FOUND_CHARS).filter(|char| !char.is_control()).collect();
        Self { expected: expected.to_owned(), found, column }
    }
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, found, column } = self;
        match found.as_str() {
            "" => write!(f, "expected {expected}, found nothing at column {column}"),
            found => write!(f, "expected {expected}, found '{found}' at column {column}"),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    dialect: Dialect,
    /// Where the next token starts: never in front of white space.
    position: usize,
    /// Where the last token ended.
    end: usize,
    depth: usize,
    variables: Vec<Variable>,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn skip_white_space(&mut self) {
        let rest = self.rest();
        self.position += rest.len() - rest.trim_start().len();
    }

    fn advance(&mut self, length: usize) -> &'a str {
        let start = self.position;
        self.end = start + length;
        self.position = self.end;
        self.skip_white_space();
        self.text.get(start..self.end).unwrap_or_default()
    }

    fn take(&mut self, mark: char) -> bool {
        let is_next = self.rest().starts_with(mark);
        if is_next {
            self.advance(mark.len_utf8());
        }
        is_next
    }

    fn require(&mut self, mark: char, expected: &str) -> Result<(), FormulaError> {
        if self.take(mark) { Ok(()) } else { Err(self.error_here(expected)) }
    }

    /// That `expected` is missing here: what is found is the next word or character.
    fn error_here(&self, expected: &str) -> FormulaError {
        let rest = self.rest();
        let length = match self.number_length().max(self.word_length()) {
            0 => rest.chars().next().map_or(0, char::len_utf8),
            length => length,
        };
        FormulaError::new(self.text, self.position, expected, rest.get(..length).unwrap_or(rest))
    }

    /// Operands and the operators between them that bind more strongly than `floor`.
    fn expression(&mut self, floor: u8) -> Result<Node, FormulaError> {
        let first = self.operand()?;
        let mut links = Vec::new();
        while let Some(operator) = self.operator().filter(|operator| operator.power() > floor) {
            self.advance(1);
            let start = self.position;
            let right = self.expression(operator.power())?;
            links.push(Link { operator, right, span: start..self.end });
        }
        // What is left of an operator always comes first, so all of them form one chain.
        Ok(if links.is_empty() { first } else { Node::Chain(Box::new(first), links) })
    }

    fn operator(&self) -> Option<Operator> {
        match self.rest().bytes().next()? {
            b'+' => Some(Operator::Add),
            b'-' => Some(Operator::Subtract),
            b'*' => Some(Operator::Multiply),
            b'/' => Some(Operator::Divide),
            _ => None,
        }
    }

    fn operand(&mut self) -> Result<Node, FormulaError> {
        if self.depth == DEPTH_MAX {
            return Err(self.error_here(&format!("at most {DEPTH_MAX} parts inside each other")));
        }
        self.depth += 1;
        let node = if self.take('(') {
            let node = self.expression(0)?;
            self.require(')', "an operator or ')'")?;
            node
        } else if self.take('-') {
            Node::Negated(Box::new(self.operand()?))
        } else if self.number_length() > 0 {
            self.number()?
        } else {
            self.word()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn number(&mut self) -> Result<Node, FormulaError> {
        let start = self.position;
        let digits = self.advance(self.number_length());
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Node::Number(number)),
            _ => Err(FormulaError::new(self.text, start, "a number below 1.8e308", digits)),
        }
    }

    /// A variable, or a function with its arguments.
    fn word(&mut self) -> Result<Node, FormulaError> {
        let length = self.word_length();
        if length == 0 {
            return Err(self.error_here(OPERAND));
        }
        let position = self.position;
        let word = self.advance(length);
        let function = FUNCTIONS.iter().find(|(name, _)| *name == word);
        if let Some(&(name, function)) = function {
            self.require('(', &format!("'(' behind '{name}'"))?;
            let a = self.expression(0)?;
            self.require(',', "an operator or ','")?;
            let b = self.expression(0)?;
            self.require(')', "an operator or ')'")?;
            return Ok(Node::Call(function, Box::new([a, b])));
        }
        let known = self.variables.iter().position(|variable| variable.name == word);
        Ok(Node::Variable(known.unwrap_or_else(|| {
            self.variables.push(Variable { name: word.to_owned(), position });
            self.variables.len() - 1
        })))
    }

    /// How many bytes the number has that comes next: digits, one point among them, an exponent.
    fn number_length(&self) -> usize {
        let rest = self.rest().as_bytes();
        let digits_from = |from: usize| {
            let digits = rest.iter().skip(from).take_while(|byte| byte.is_ascii_digit());
            digits.count()
        };
        let whole = digits_from(0);
        let mut length = whole;
        if rest.get(length) == Some(&b'.') {
            let fraction = digits_from(length + 1);
            if whole + fraction == 0 {
                return 0;
            }
            length += 1 + fraction;
        }
        if length > 0 && matches!(rest.get(length), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(length + 1), Some(b'+' | b'-')));
            let exponent = digits_from(length + 1 + sign);
            if exponent > 0 {
                length += 1 + sign + exponent;
            }
        }
        length
    }

    /// How many bytes the name has that comes next.
    fn word_length(&self) -> usize {
        let rest = self.rest();
        if !rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            return 0;
        }
        let also = match self.dialect {
            Dialect::Own => "_",
            Dialect::Likwid => "_:=",
        };
        let is_inside = |char: char| char.is_ascii_alphanumeric() || also.contains(char);
        rest.find(|char| !is_inside(char)).unwrap_or(rest.len())
    }
}
