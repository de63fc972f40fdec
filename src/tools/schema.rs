//! `duologue schema`: the protocol as `.proto` files, as descriptors or as JSON Schema.

use super::args::{SchemaArgs, SchemaForm};
use super::output::{Failure, Out, status};
use crate::schema;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;

/// Prints or writes the schema that `args` name; gives the exit status.
pub fn schema(args: &SchemaArgs) -> u8 {
    status(run(args))
}

fn run(args: &SchemaArgs) -> Result<u8, Failure> {
    if let (Some(_), SchemaForm::Descriptors | SchemaForm::Json) = (&args.out, args.form) {
        let message = "--out is for .proto files; send the others into a file with >";
        return Err(Failure::Usage(message.to_owned()));
    }
    if let (Some(_), SchemaForm::Proto | SchemaForm::Descriptors) = (args.of, args.form) {
        let message = "--for is for JSON Schema, as in: duologue schema json --for request; the \
                       other forms always hold every message";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut out = Out::new()?;
    match (args.form, &args.out) {
        (SchemaForm::Proto, Some(folder)) => write_files(folder)?,
        (SchemaForm::Proto, None) => out.write(schema::proto_text().as_bytes())?,
        (SchemaForm::Descriptors, _) if io::stdout().is_terminal() => {
            let message = "descriptors are binary and this is a terminal; send them into a file, \
                           as in: duologue schema descriptors > descriptors.bin";
            return Err(Failure::Usage(message.to_owned()));
        }
        (SchemaForm::Descriptors, _) => out.write(schema::descriptors())?,
        (SchemaForm::Json, _) => {
            out.line(&format!("{:#}", schema::json(args.of.unwrap_or_default())))?
        }
    }
    out.flush()?;
    Ok(0)
}

fn write_files(folder: &Path) -> Result<(), Failure> {
    for (name, text) in schema::PROTO_FILES {
        let path = folder.join(name);
        let written =
            path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        written.map_err(|error| {
            Failure::Usage(format!("--out: {} can't be written: {error}", path.display()))
        })?;
    }
    Ok(())
}
