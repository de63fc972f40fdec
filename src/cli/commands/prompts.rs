//! `duologue run` without a name: the prompts there are.

use super::document::{self, Document};
use super::output::Failure;
use crate::cli::prompts::{Listed, folders, list};
use crate::cli::{LogLevel, RunArgs, log};
use crate::support::files::WorkFolder;
use crate::support::terminal::escape_control;
use serde_json::json;

/// Prints the prompts that can be run by their names; returns the exit status.
pub fn prompts(args: &RunArgs) -> u8 {
    document::print(&args.output, || {
        let started = log::start(LogLevel::Warn, None);
        started.map_err(|error| Failure::Usage(format!("{error:#}")))?;
        Ok(listed(&list(&WorkFolder::default())))
    })
}

fn listed(prompts: &[Listed]) -> Document {
    let data = prompts.iter().map(|Listed { name, layer, path, is_trusted, about }| {
        json!({
            "name": name,
            "layer": layer.as_str(),
            "path": path.display().to_string(),
            "trusted": is_trusted,
            "canRun": about.is_ok(),
            "about": about.as_ref().unwrap_or_else(|why| why),
        })
    });
    let text = if prompts.is_empty() { nothing() } else { table(prompts) };
    Document { data: data.collect(), text: text.into_bytes() }
}

fn nothing() -> String {
    let folders = folders(&WorkFolder::default());
    let folders = folders.iter().map(|(_, folder)| format!("  {}\n", folder.display()));
    format!(
        "There are no prompts. A command file NAME.yaml is one in\n  .duologue/commands in the working \
         folder, or the nearest one above it\n{}",
        folders.collect::<String>()
    )
}

fn table(prompts: &[Listed]) -> String {
    let line = |Listed { name, layer, about, .. }: &Listed| {
        let about = match about {
            Ok(about) => about.clone(),
            Err(why) => format!("can't be run: {why}"),
        };
        [name.as_str(), layer.as_str(), &about].map(escape_control)
    };
    let head = ["NAME", "LAYER", "WHAT IT IS"].map(str::to_owned);
    let lines: Vec<[String; 3]> = std::iter::once(head).chain(prompts.iter().map(line)).collect();
    let width =
        |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let (w0, w1) = (width(0), width(1));
    let line = |[name, layer, about]: &[String; 3]| {
        format!("{}\n", format!("{name:w0$}  {layer:w1$}  {about}").trim_end())
    };
    lines.iter().map(line).collect()
}
