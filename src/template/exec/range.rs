//! `range`: iterates over a list or a map, or counts up to a number.

use super::super::types::MapType;
use super::super::value::Value;
use super::{Exec, Flow};
use gotmpl::parse::BranchNode;

impl<'t> Exec<'t> {
    pub(super) fn range(&mut self, branch: &'t BranchNode, dot: &Value) -> Result<Flow, String> {
        let outside = self.variables.len();
        let over = self.value(&branch.pipe, dot)?;
        if !branch.pipe.is_assign {
            for name in &branch.pipe.decl {
                self.variables.push((name, over.clone()));
            }
        }
        let mut is_empty = true;
        let mut each = |exec: &mut Self, key: Value, item: Value| {
            is_empty = false;
            exec.round(branch, key, item)
        };
        match &over {
            Value::List(list) => {
                let mut items = (0..).map(Value::Int).zip(list.iter());
                while let Some((key, item)) = items.next()
                    && each(self, key, item.clone())?
                {}
            }
            Value::Map(id) if id.kind() != MapType::File => {
                let mut items = self.heap.members(*id)?.into_iter();
                while let Some((key, item)) = items.next()
                    && each(self, id.key(key), item)?
                {}
            }
            Value::Int(count) | Value::Named(_, count) if branch.pipe.decl.len() < 2 => {
                let mut items = 0..*count;
                while let Some(item) = items.next()
                    && each(self, Value::Int(item), Value::Int(item))?
                {}
            }
            Value::Int(count) | Value::Named(_, count) => {
                return Err(format!("can't use {count} to range with two variables; use one"));
            }
            Value::Nil => {}
            Value::Bool(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Time(_)
            | Value::Version(_)
            | Value::Error(_)
            | Value::Map(_) => {
                return Err(format!(
                    "can't range over a {}; use a list, a map or an integer",
                    over.type_name()
                ));
            }
        }
        let flow = if is_empty { self.otherwise(branch, dot)? } else { Flow::Next };
        self.variables.truncate(outside);
        Ok(flow)
    }

    /// One iteration of a `range`. False if it was the last.
    fn round(&mut self, branch: &'t BranchNode, key: Value, item: Value) -> Result<bool, String> {
        self.step(branch.pos.line)?;
        match branch.pipe.decl.as_slice() {
            [] => {}
            [name] => self.assign(name, item.clone())?,
            [name_of_key, name, ..] => {
                self.assign(name_of_key, key)?;
                self.assign(name, item.clone())?;
            }
        }
        let outside = self.variables.len();
        let flow = self.list(&branch.body, &item)?;
        self.variables.truncate(outside);
        Ok(!matches!(flow, Flow::Break))
    }
}
