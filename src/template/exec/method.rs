//! `.d.Format "2006"`: the last name of a chain as a method that takes arguments.

use super::super::methods;
use super::super::value::Value;
use super::Exec;
use gotmpl::parse::Expr;

/// The error if a value is followed by arguments and has no method that takes them.
const NO_METHOD: &str = "only functions take arguments; this is a value: take out what follows it, \
     or put a function before it";

impl<'t> Exec<'t> {
    /// Calls the method that `first` ends in, with these arguments. The result of the previous
    /// command is its last argument.
    pub(super) fn method(
        &mut self,
        first: &'t Expr,
        args: &'t [Expr],
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, String> {
        let line = self.line;
        let (receiver, name) = self.receiver(first, dot)?.ok_or(NO_METHOD)?;
        let has_methods = matches!(
            receiver,
            Value::Time(_) | Value::Named(..) | Value::Version(_) | Value::Error(Some(_))
        );
        if !has_methods {
            return Err(NO_METHOD.into());
        }
        let values = args.iter().map(|arg| self.expr(arg, dot));
        let mut values = values.collect::<Result<Vec<_>, _>>()?;
        values.extend(last);
        self.line = line;
        methods::call(&receiver, name, &values, self.now)
    }

    /// The chain without its last name, and that name.
    fn receiver(
        &mut self,
        chain: &'t Expr,
        dot: &Value,
    ) -> Result<Option<(Value, &'t str)>, String> {
        let (start, fields) = if let Expr::Field(_, fields) = chain {
            (dot.clone(), fields)
        } else if let Expr::Variable(_, name, fields) = chain {
            (self.variable(name)?, fields)
        } else if let Expr::Chain(_, inner, fields) = chain {
            (self.within(|exec| exec.expr(inner, dot))?, fields)
        } else {
            return Ok(None);
        };
        let Some((name, before)) = fields.split_last() else { return Ok(None) };
        Ok(Some((self.fields(start, before)?, name)))
    }
}
