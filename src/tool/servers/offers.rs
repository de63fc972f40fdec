//! What people take from servers to ask with: resources and prompts.

use super::{ToolServers, ready};
use crate::protocol::attachment::Attachment;
use crate::task::server::{FilledPrompt, ServerName, ServerPrompt, ServerResource};
use crate::tool::connection::{Link, Listings};
use crate::tool::{arguments, contents};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Longest time for a list, a resource or a prompt. A server that is being started counts from its start.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// The resources and prompts of a server.
#[derive(Clone, Debug)]
pub struct Offers {
    /// Its resources; none if it has no such capability, or did not list them.
    pub resources: Arc<[ServerResource]>,
    /// Its prompts; none if it has no such capability, or did not list them.
    pub prompts: Arc<[ServerPrompt]>,
    /// What was left out, for people: items, or one of the lists.
    pub warnings: Vec<String>,
}

impl ToolServers {
    /// The resources and prompts that a server lists; one list if it does not give the other. A server that is being
    /// started is waited for.
    ///
    /// # Errors
    /// The future's: why neither can be listed, with the name of the server.
    pub fn offers(
        &self,
        server: &ServerName,
    ) -> impl Future<Output = Result<Offers, String>> + Send + 'static + use<> {
        let config = self.servers.get(server).map(|known| Arc::clone(&known.config));
        // Each has its own time: a list that is never sent does not take the other one away.
        let (resources, prompts) = (self.resources(server), self.prompts(server));
        async move {
            let (resources, prompts) = tokio::join!(resources, prompts);
            let shown = |warning: String| match &config {
                Some(config) => config.shown(&warning),
                None => warning,
            };
            offers(resources, prompts, shown)
        }
    }

    /// The resources that a server lists, and a warning about each that was left out. A server that is being started
    /// is waited for.
    ///
    /// # Errors
    /// The future's: why they can't be listed, with the name of the server.
    pub(crate) fn resources(
        &self,
        server: &ServerName,
    ) -> impl Future<Output = Result<Listings<ServerResource>, String>> + Send + 'static + use<>
    {
        self.asked(server, "list its resources", |link| async move { link.resources().await })
    }

    /// The prompts that a server lists, and a warning about each that was left out. A server that is being started is
    /// waited for.
    ///
    /// # Errors
    /// The future's: why they can't be listed, with the name of the server.
    pub(crate) fn prompts(
        &self,
        server: &ServerName,
    ) -> impl Future<Output = Result<Listings<ServerPrompt>, String>> + Send + 'static + use<> {
        self.asked(server, "list its prompts", |link| async move { link.prompts().await })
    }

    /// The contents of a server's resource, as attachments.
    ///
    /// # Errors
    /// The future's: why they can't be used, with the name of the server.
    pub fn read_resource(
        &self,
        server: &ServerName,
        uri: String,
    ) -> impl Future<Output = Result<Vec<Attachment>, String>> + Send + 'static + use<> {
        self.asked(server, "send the resource", |link| async move {
            contents::of_resource(&link.resource(uri.clone()).await?, &uri)
        })
    }

    /// A server's prompt with the arguments in `words`: `name=value`, or values in the order of the arguments.
    ///
    /// # Errors
    /// The future's: why it can't be used, with the name of the server.
    pub fn fill_prompt(
        &self,
        server: &ServerName,
        prompt: String,
        words: Vec<String>,
    ) -> impl Future<Output = Result<FilledPrompt, String>> + Send + 'static + use<> {
        self.asked(server, "send the prompt", |link| async move {
            let (prompts, _) = link.prompts().await?;
            let arguments = arguments::of_words(&prompts, &prompt, &words)?;
            contents::of_prompt(&link.prompt(prompt, arguments).await?)
        })
    }

    /// Asks a server for something once it is ready, within [`ANSWER_MAX`].
    fn asked<T, A, F>(
        &self,
        server: &ServerName,
        what: &'static str,
        ask: F,
    ) -> impl Future<Output = Result<T, String>> + Send + 'static + use<T, A, F>
    where
        T: Send + 'static,
        F: FnOnce(Link) -> A + Send + 'static,
        A: Future<Output = Result<T, String>> + Send + 'static,
    {
        let table = self.table.subscribe();
        let known = self.servers.get(server);
        let known = known.map(|known| (Arc::clone(&known.config), Arc::clone(&known.wanted)));
        let names: Vec<_> = self.names().map(ServerName::as_str).collect();
        let unknown = match names.is_empty() {
            true => format!("there is no MCP server `{server}`, nor any other"),
            false => format!("there is no MCP server `{server}`; there are: {}", names.join(", ")),
        };
        let server = server.clone();
        async move {
            let Some((config, wanted)) = known else { return Err(unknown) };
            let answer = async {
                let link = ready(table, &server, &wanted).await?;
                let answer = ask(link).await;
                answer.map_err(|why| format!("the MCP server `{server}`: {}", config.shown(&why)))
            };
            match timeout(ANSWER_MAX, answer).await {
                Ok(answer) => answer,
                Err(_) => Err(format!(
                    "the MCP server `{server}` did not {what} within {} s",
                    ANSWER_MAX.as_secs()
                )),
            }
        }
    }
}

/// What there is of both lists, with the warnings of the lists as they are `shown`; why there is neither.
fn offers(
    resources: Result<Listings<ServerResource>, String>,
    prompts: Result<Listings<ServerPrompt>, String>,
    shown: impl Fn(String) -> String,
) -> Result<Offers, String> {
    let faults = [resources.as_ref().err(), prompts.as_ref().err()];
    let mut warnings: Vec<_> = faults.into_iter().flatten().cloned().collect();
    // A server that does not run has one reason for both.
    warnings.dedup();
    if resources.is_err() && prompts.is_err() {
        return Err(warnings.join("; "));
    }
    let (resources, of_resources) = resources.unwrap_or_default();
    let (prompts, of_prompts) = prompts.unwrap_or_default();
    warnings.extend(of_resources.into_iter().chain(of_prompts).map(shown));
    Ok(Offers { resources, prompts, warnings })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::limits::ToolLimits;
    use crate::tool::config::Servers;
    use crate::tool::connection::{Closed, Connection};
    use crate::tool::line_transport::LineTransport;
    use crate::tool::table::Phase;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};

    fn listed<T>() -> Result<Listings<T>, String> {
        Ok((Arc::new([]), vec!["one of them is odd".to_owned()]))
    }

    #[test]
    fn one_list_is_offered_without_the_other() {
        let why = |what: &str| format!("its {what} can't be listed: no disk");
        let (odd, shown) = ("[one of them is odd]".to_owned(), |text| format!("[{text}]"));
        let half = offers(Err(why("resources")), listed(), shown).expect("the prompts");
        assert_eq!(half.warnings, [why("resources"), odd.clone()]);
        let half = offers(listed(), Err(why("prompts")), shown).expect("the resources");
        assert_eq!(half.warnings, [why("prompts"), odd]);
        let none = offers(Err(why("resources")), Err(why("prompts")), shown).expect_err("neither");
        assert_eq!(none, format!("{}; {}", why("resources"), why("prompts")));
        let none = offers(Err("it has ended".to_owned()), Err("it has ended".to_owned()), shown);
        assert_eq!(none.expect_err("neither"), "it has ended");
    }

    /// A server that lists a resource, and does not answer when it is asked for its prompts.
    async fn serve_without_prompts(stream: DuplexStream) {
        let (input, mut output) = split(stream);
        let mut lines = BufReader::new(input).lines();
        while let Some(line) = lines.next_line().await.expect("a line") {
            let message: Value = serde_json::from_str(&line).expect("JSON");
            let result = match message["method"].as_str() {
                Some("initialize") => json!({
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"resources": {}, "prompts": {}},
                    "serverInfo": {"name": "docs", "version": "1"},
                }),
                Some("resources/list") => {
                    json!({ "resources": [{"uri": "note://1", "name": "a"}] })
                }
                Some(_) | None => continue,
            };
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            output.write_all(format!("{answer}\n").as_bytes()).await.expect("a pipe");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_is_never_sent_does_not_take_the_other_one_away() {
        let (ours, theirs) = duplex(64 * 1024);
        let server = tokio::spawn(serve_without_prompts(theirs));
        let (input, output) = split(ours);
        let closed = Closed::new(None);
        let transport = LineTransport::new(input, output, closed.clone());
        let connection = Connection::open(transport, None, closed, None).await.expect("a server");
        let mut configs = Servers::default();
        configs.add_command("docs").expect("a server");
        let servers = ToolServers::new(configs.configs, ToolLimits::default(), None);
        let name = ServerName::new("docs").expect("a name");
        let ready = Phase::Ready(connection.link());
        servers.table.send_modify(|table| table.set(&name, ready, Arc::new([])));
        let offers = servers.offers(&name).await.expect("the resources");
        assert_eq!(offers.resources.len(), 1);
        let why = "the MCP server `docs` did not list its prompts within 60 s";
        assert_eq!(offers.warnings, [why]);
        server.abort();
    }
}
