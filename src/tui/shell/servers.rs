//! Asks tool servers for what a person takes from them: resources, prompts, another start.

use super::Shell;
use crate::support::shell_words;
use crate::task::server::ServerName;
use crate::tui::model::{Event, Expansion};
use crate::tui::text::clean;

impl Shell<'_> {
    /// Has each of these servers list what it offers, once it is ready.
    pub(super) fn ask_servers(&mut self, names: Vec<String>) {
        for server in names {
            let Some(name) = ServerName::new(&server) else { continue };
            let offers = self.host.servers().offers(&name);
            self.find_later(async move { Event::Offered { server, offers: offers.await } });
        }
    }

    /// Has a server make the prompt that `line` names; false if it names none.
    pub(super) fn fill_prompt(&mut self, line: &str, joins: bool) -> bool {
        let named = line.trim_start_matches('/');
        let (word, rest) = named.split_once(char::is_whitespace).unwrap_or((named, ""));
        let Some((server, prompt)) = self.state.of_server(word) else { return false };
        let Some(server) = ServerName::new(server) else { return false };
        let line = line.to_owned();
        let Some(words) = shell_words::split(rest) else {
            let prompt = Err("the arguments have quotes that don't match".to_owned());
            self.update(Event::Expanded { line, joins, prompt });
            return true;
        };
        let filled = self.host.servers().fill_prompt(&server, prompt.to_owned(), words);
        self.find_later(async move {
            let prompt = filled.await.map(Expansion::from).map_err(|why| clean(&why));
            Event::Expanded { line, joins, prompt }
        });
        true
    }

    pub(super) fn restart_server(&mut self, name: &str) {
        let shown = clean(name);
        let restarted = self.host.restart_server(name);
        let done = match &restarted {
            Some(_) => {
                Ok(format!("the tool server {shown} is being started again; /mcp shows its state"))
            }
            None => Err(format!("there is no tool server {shown}")),
        };
        self.perform(restarted.unwrap_or_default());
        self.update(Event::Reported(done));
        self.ask_servers(vec![name.to_owned()]);
    }

    /// Does `work` beside everything else; a chat that has ended wants no answer.
    fn find_later(&self, work: impl Future<Output = Event> + Send + 'static) {
        let found = self.found.0.clone();
        tokio::spawn(async move { drop(found.send(work.await)) });
    }
}
