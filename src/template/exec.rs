//! Executes a template's syntax tree.
//!
//! gotmpl has an executor too. This one reports the line of an error, limits the work, has
//! maps that `set` can change, and formats floats as Go does.

mod append;
mod method;
mod range;

use super::functions::{self, FunctionCall};
use super::types::MapType;
use super::value::{Heap, Value};
use super::{Missing, OUTPUT_BYTES_MAX, format, methods};
use gotmpl::parse::{
    BranchNode, CommandNode, Expr, ListNode, Node, Number, PipeNode, TemplateNode,
};
use jiff::Zoned;
use std::collections::BTreeMap;

/// Deepest nesting of blocks, parentheses and templates while rendering.
const LEVELS_MAX: usize = 200;

/// Most actions and commands that one rendering may execute.
const STEPS_MAX: u64 = 20_000_000;

/// The error for printing a missing value where that is refused.
const NO_VALUE: &str = "this prints a missing value; set the flag, give it a default in the \
     file, or print it inside {{ if }}";

/// The bodies of the templates, by name.
pub(super) type Bodies = BTreeMap<String, ListNode>;

/// How a body was left.
enum Flow {
    Next,
    Break,
    Continue,
}

/// The state of one rendering.
pub(super) struct Exec<'t> {
    bodies: &'t Bodies,
    heap: Heap,
    now: &'t Zoned,
    missing: Missing,
    out: String,
    variables: Vec<(&'t str, Value)>,
    line: usize,
    level: usize,
    steps_left: u64,
}

impl<'t> Exec<'t> {
    pub(super) fn new(bodies: &'t Bodies, heap: Heap, now: &'t Zoned, missing: Missing) -> Self {
        let (variables, out) = (Vec::new(), String::new());
        let (line, level, steps_left) = (1, 0, STEPS_MAX);
        Self { bodies, heap, now, missing, out, variables, line, level, steps_left }
    }

    /// Renders a body; an error has its line.
    pub(super) fn run(
        mut self,
        body: &'t ListNode,
        values: Value,
    ) -> Result<String, (usize, String)> {
        self.variables.push(("$", values.clone()));
        match self.list(body, &values) {
            Ok(_) => Ok(self.out),
            Err(message) => Err((self.line, message)),
        }
    }

    fn step(&mut self, line: usize) -> Result<(), String> {
        self.line = line;
        self.steps_left = self
            .steps_left
            .checked_sub(1)
            .ok_or_else(|| format!("too many steps: a template may take {STEPS_MAX}"))?;
        Ok(())
    }

    /// Runs `work` one level deeper. Every level takes stack.
    fn within<T>(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.level >= LEVELS_MAX {
            return Err(format!(
                "blocks and templates are nested more than {LEVELS_MAX} levels deep; does \
                 a template call itself?"
            ));
        }
        self.level += 1;
        let result = inside(self)?;
        self.level -= 1;
        Ok(result)
    }

    fn write(&mut self, text: &str) -> Result<(), String> {
        if self.out.len() + text.len() > OUTPUT_BYTES_MAX {
            return Err(format!("the text is longer than {} MiB", OUTPUT_BYTES_MAX / 1024 / 1024));
        }
        self.out.push_str(text);
        Ok(())
    }

    fn list(&mut self, list: &'t ListNode, dot: &Value) -> Result<Flow, String> {
        for node in &list.nodes {
            match self.node(node, dot)? {
                Flow::Next => {}
                left @ (Flow::Break | Flow::Continue) => return Ok(left),
            }
        }
        Ok(Flow::Next)
    }

    fn node(&mut self, node: &'t Node, dot: &Value) -> Result<Flow, String> {
        match node {
            Node::Text(text) => self.write(&text.text)?,
            Node::Action(action) => {
                let value = self.pipe(&action.pipe, dot)?;
                if action.pipe.decl.is_empty() {
                    self.show(&value)?;
                }
            }
            Node::If(branch) => return self.within(|exec| exec.branch(branch, dot, false)),
            Node::With(branch) => return self.within(|exec| exec.branch(branch, dot, true)),
            Node::Range(branch) => return self.within(|exec| exec.range(branch, dot)),
            Node::Template(call) => self.within(|exec| exec.template(call, dot))?,
            Node::List(list) => return self.list(list, dot),
            Node::Define(_) => {}
            Node::Break(_) => return Ok(Flow::Break),
            Node::Continue(_) => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn show(&mut self, value: &Value) -> Result<(), String> {
        if let Value::Text(text) = value {
            return self.write(text);
        }
        if let Value::Nil = value {
            let is_refused = self.missing == Missing::Refused;
            return if is_refused { Err(NO_VALUE.to_owned()) } else { self.write("<no value>") };
        }
        let text = format::show(&mut self.heap, value)?;
        // Go prints the value that a pointer refers to.
        let is_pointer = matches!(value, Value::Map(id) if id.kind() == MapType::File);
        self.write(if is_pointer { text.trim_start_matches('&') } else { &text })
    }

    /// `if`, and `with`, which sets the dot to the value that it tests.
    fn branch(
        &mut self,
        branch: &'t BranchNode,
        dot: &Value,
        is_with: bool,
    ) -> Result<Flow, String> {
        let outside = self.variables.len();
        let value = self.pipe(&branch.pipe, dot)?;
        let flow = if value.is_true(&self.heap) {
            self.list(&branch.body, if is_with { &value } else { dot })?
        } else {
            self.otherwise(branch, dot)?
        };
        self.variables.truncate(outside);
        Ok(flow)
    }

    fn otherwise(&mut self, branch: &'t BranchNode, dot: &Value) -> Result<Flow, String> {
        branch.else_body.as_ref().map_or(Ok(Flow::Next), |list| self.list(list, dot))
    }

    /// The called template sees none of the caller's variables.
    fn template(&mut self, call: &'t TemplateNode, dot: &Value) -> Result<(), String> {
        self.step(call.pos.line)?;
        let Some(body) = self.bodies.get(call.name.as_str()) else {
            return Err(format!(
                "template {:?} is not defined; add {{{{define}}}} for it, or check its name",
                call.name.as_str()
            ));
        };
        let dot = match &call.pipe {
            Some(pipe) => self.pipe(pipe, dot)?,
            None => Value::Nil,
        };
        let callers = std::mem::replace(&mut self.variables, vec![("$", dot.clone())]);
        self.list(body, &dot)?;
        self.variables = callers;
        Ok(())
    }

    /// The value of a pipeline, which is assigned to the variable that it declares or sets.
    fn pipe(&mut self, pipe: &'t PipeNode, dot: &Value) -> Result<Value, String> {
        let value = self.value(pipe, dot)?;
        for name in &pipe.decl {
            if pipe.is_assign {
                self.assign(name, value.clone())?;
            } else {
                self.variables.push((name, value.clone()));
            }
        }
        Ok(value)
    }

    fn assign(&mut self, name: &str, value: Value) -> Result<(), String> {
        let variable = self.variables.iter_mut().rev().find(|(declared, _)| *declared == name);
        let (_, held) = variable.ok_or_else(|| format!("undefined variable {name}"))?;
        *held = value;
        Ok(())
    }

    fn variable(&self, name: &str) -> Result<Value, String> {
        let variable = self.variables.iter().rev().find(|(declared, _)| *declared == name);
        let value = variable.map(|(_, value)| value.clone());
        value.ok_or_else(|| format!("undefined variable {name}"))
    }

    fn value(&mut self, pipe: &'t PipeNode, dot: &Value) -> Result<Value, String> {
        let mut last = None;
        for (index, command) in pipe.commands.iter().enumerate() {
            self.step(command.pos.line)?;
            let is_end = index + 1 == pipe.commands.len();
            last = Some(match append::appended(pipe, command).filter(|_| is_end) {
                Some(append) => self.append(append, dot, last)?,
                None => self.command(command, dot, last)?,
            });
        }
        Ok(last.unwrap_or(Value::Nil))
    }

    /// One command of a pipeline. The result of the previous command is its last argument.
    fn command(
        &mut self,
        command: &'t CommandNode,
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, String> {
        let Some((first, args)) = command.args.split_first() else {
            return Err("a command is empty".into());
        };
        if let Expr::Identifier(_, name) = first {
            return self.call(name, args, dot, last);
        }
        if let Expr::Nil(_) = first {
            return Err("nil is not a command; write {{ print nil }} to print it".into());
        }
        if args.is_empty() && last.is_none() {
            return self.expr(first, dot);
        }
        self.method(first, args, dot, last)
    }

    fn call(
        &mut self,
        name: &str,
        args: &'t [Expr],
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, String> {
        let line = self.line;
        if matches!(name, "and" | "or") && args.len() + usize::from(last.is_some()) > 0 {
            return self.short_circuit(name == "and", args, dot, last);
        }
        let mut values = Vec::with_capacity(args.len() + 1);
        for arg in args {
            values.push(self.expr(arg, dot)?);
        }
        values.extend(last);
        self.line = line;
        functions::call(
            name,
            &mut FunctionCall { heap: &mut self.heap, now: self.now, args: &values },
        )
    }

    /// `and` and `or` return the first argument that decides, and don't evaluate the others.
    fn short_circuit(
        &mut self,
        is_and: bool,
        args: &'t [Expr],
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, String> {
        let mut value = Value::Nil;
        for arg in args {
            value = self.expr(arg, dot)?;
            if value.is_true(&self.heap) != is_and {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    fn expr(&mut self, expr: &'t Expr, dot: &Value) -> Result<Value, String> {
        match expr {
            Expr::Dot(_) => Ok(dot.clone()),
            Expr::Field(_, fields) => self.fields(dot.clone(), fields),
            Expr::Variable(_, name, fields) => {
                let value = self.variable(name)?;
                self.fields(value, fields)
            }
            Expr::Identifier(_, name) => self.call(name, &[], dot, None),
            Expr::String(_, text) => Ok(Value::Text(text.clone())),
            Expr::Number(_, Number::Int(number)) => Ok(Value::Int(*number)),
            Expr::Number(_, Number::Float(number)) => Ok(Value::Float(*number)),
            Expr::Number(_, Number::Uint(number)) => Err(format!("{number} overflows int")),
            Expr::Bool(_, truth) => Ok(Value::Bool(*truth)),
            Expr::Nil(_) => Ok(Value::Nil),
            Expr::Pipe(_, pipe) => self.within(|exec| exec.pipe(pipe, dot)),
            Expr::Chain(_, inner, fields) => {
                let value = self.within(|exec| exec.expr(inner, dot))?;
                self.fields(value, fields)
            }
        }
    }

    /// `.a.b.c` of a value. What is not in a map is nil, and so are its fields; but a field of a
    /// null in the data is an error, as in Go.
    fn fields<F: AsRef<str>>(&mut self, value: Value, fields: &[F]) -> Result<Value, String> {
        let mut value = value;
        let mut is_null = false;
        for field in fields {
            let field = field.as_ref();
            let found = match &value {
                Value::Map(id) if id.kind() == MapType::File => Some(self.heap.field(*id, field)?),
                Value::Map(id) => match self.heap.read(*id).get(field) {
                    None if self.missing == Missing::Refused => return Err(no_name(field)),
                    found => found.cloned(),
                },
                Value::Nil if !is_null => None,
                Value::Nil | Value::Error(None) => {
                    return Err(format!("can't take .{field} of a null"));
                }
                Value::Bool(_)
                | Value::Int(_)
                | Value::Named(..)
                | Value::Float(_)
                | Value::Text(_)
                | Value::Time(_)
                | Value::Version(_)
                | Value::Error(_)
                | Value::List(_) => Some(methods::call(&value, field, &[], self.now)?),
            };
            is_null = matches!(found, Some(Value::Nil));
            value = found.unwrap_or(Value::Nil);
        }
        Ok(value)
    }
}

fn no_name(field: &str) -> String {
    format!("there is no value named .{field}; check its spelling, or declare a flag of this name")
}
