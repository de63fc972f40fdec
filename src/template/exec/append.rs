//! `$a = append $a …`, which builds a list item by item.

use super::super::functions::{self, FunctionCall};
use super::super::value::Value;
use super::Exec;
use gotmpl::parse::{CommandNode, Expr, PipeNode};

/// `append` or `push`, the variable, and the other arguments.
pub(super) type Append<'t> = (&'t str, &'t str, &'t [Expr]);

/// The arguments of an append to the variable that the pipeline sets; `None` for other commands.
pub(super) fn appended<'t>(pipe: &'t PipeNode, command: &'t CommandNode) -> Option<Append<'t>> {
    let [set] = pipe.decl.as_slice() else { return None };
    match command.args.as_slice() {
        [Expr::Identifier(_, function), Expr::Variable(_, name, fields), args @ ..]
            if pipe.is_assign
                && matches!(function.as_str(), "append" | "push")
                && name == set
                && fields.is_empty() =>
        {
            Some((function.as_str(), name.as_str(), args))
        }
        _ => None,
    }
}

impl<'t> Exec<'t> {
    /// `$a = append $a …`: the variable gives up its list, which can then grow in place. A list
    /// that a `range` builds item by item would otherwise be copied for each.
    pub(super) fn append(
        &mut self,
        (function, name, args): Append<'t>,
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, String> {
        let line = self.line;
        let items = args.iter().map(|arg| self.expr(arg, dot));
        let mut items = items.collect::<Result<Vec<_>, _>>()?;
        items.extend(last);
        self.line = line;
        let variable = self.variables.iter_mut().rev().find(|(declared, _)| *declared == name);
        let (_, held) = variable.ok_or_else(|| format!("undefined variable {name}"))?;
        match (std::mem::replace(held, Value::Nil), items.len()) {
            (Value::List(list), 1) => self.heap.pushed(list, items.remove(0)),
            (held, _) => {
                items.insert(0, held);
                let call = &mut FunctionCall { heap: &mut self.heap, now: self.now, args: &items };
                functions::call(function, call)
            }
        }
    }
}
