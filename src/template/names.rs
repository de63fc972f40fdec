//! Checks names, which Go's parser does and gotmpl's does not.

use super::{TemplateError, functions};
use gotmpl::parse::{BranchNode, CommandNode, Expr, ListNode, Node, PipeNode};
use serde_json::Value as Json;

/// Checks that functions exist, that variables are declared before they are used, and that what
/// follows a `|` can take an argument.
pub(super) fn check(body: &ListNode, values: &Json) -> Result<(), TemplateError> {
    let mut names = Names { declared: vec!["$".into()], line: body.pos.line, values };
    names
        .list(body)
        .map_err(|message| TemplateError { line: u32::try_from(names.line).ok(), message })
}

/// Variables in scope.
const VARIABLES_MAX: usize = 1000;

struct Names<'v> {
    declared: Vec<String>,
    line: usize,
    values: &'v Json,
}

impl Names<'_> {
    fn list(&mut self, list: &ListNode) -> Result<(), String> {
        list.nodes.iter().try_for_each(|node| match node {
            Node::List(list) => self.list(list),
            Node::Action(action) => self.pipe(&action.pipe),
            Node::If(branch) | Node::With(branch) | Node::Range(branch) => self.branch(branch),
            Node::Template(call) => call.pipe.as_ref().map_or(Ok(()), |pipe| self.pipe(pipe)),
            Node::Text(_) | Node::Define(_) | Node::Break(_) | Node::Continue(_) => Ok(()),
        })
    }

    fn branch(&mut self, branch: &BranchNode) -> Result<(), String> {
        let before = self.declared.len();
        self.pipe(&branch.pipe)?;
        let inside = self.declared.len();
        self.list(&branch.body)?;
        self.declared.truncate(inside);
        if let Some(list) = &branch.else_body {
            self.list(list)?;
        }
        self.declared.truncate(before);
        Ok(())
    }

    fn pipe(&mut self, pipe: &PipeNode) -> Result<(), String> {
        self.line = pipe.pos.line;
        for (index, command) in pipe.commands.iter().enumerate() {
            self.command(command)?;
            if index > 0 && !can_take_argument(command) {
                self.line = command.pos.line;
                return Err("a | must be followed by a function or a field".into());
            }
        }
        for name in &pipe.decl {
            if pipe.is_assign {
                self.variable(name)?;
            } else {
                self.declared.push(name.to_string());
                if self.declared.len() > VARIABLES_MAX {
                    return Err(format!("more than {VARIABLES_MAX} variables in one place"));
                }
            }
        }
        Ok(())
    }

    fn command(&mut self, command: &CommandNode) -> Result<(), String> {
        command.args.iter().try_for_each(|arg| self.expr(arg))
    }

    fn expr(&mut self, expr: &Expr) -> Result<(), String> {
        self.line = expr.pos().line;
        if let Expr::Variable(_, name, _) = expr {
            self.variable(name)?;
        }
        if let Expr::Identifier(_, name) = expr {
            functions::check(name, self.values)?;
        }
        if let Expr::Pipe(_, pipe) = expr {
            self.pipe(pipe)?;
        }
        if let Expr::Chain(_, inner, _) = expr { self.expr(inner) } else { Ok(()) }
    }

    fn variable(&self, name: &str) -> Result<(), String> {
        if self.declared.iter().any(|declared| declared == name) {
            return Ok(());
        }
        Err(format!("undefined variable {name}; declare it with {{{{ {name} := … }}}}"))
    }
}

fn can_take_argument(command: &CommandNode) -> bool {
    !matches!(
        command.args.first(),
        Some(Expr::Bool(..) | Expr::Dot(_) | Expr::Nil(_) | Expr::Number(..) | Expr::String(..))
    )
}
