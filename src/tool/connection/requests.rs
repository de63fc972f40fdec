//! What a server is asked for: its lists, a call, a resource, a prompt.

use super::{Link, Unanswered};
use crate::task::server::{ServerPrompt, ServerResource, ServerTool};
use crate::tool::listing::{Listed, Listing, Next, URI_BYTES_MAX};
use crate::tool::progress::Newest;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetPromptRequest,
    GetPromptRequestParams, ListPromptsRequest, ListResourcesRequest, ListToolsRequest,
    PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams, ServerCapabilities,
};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A list of a server, and a warning about each item that was left out.
pub(crate) type Listings<T> = (Arc<[T]>, Vec<String>);

impl Link {
    /// All tools of the server, and a warning about those that were left out. It is asked also if it has no such
    /// capability: some servers have tools and do not say so. One that has only resources or prompts need not know
    /// the method.
    ///
    /// # Errors
    /// If the server does not list them.
    pub(in crate::tool) async fn tools(&self) -> Result<Listings<ServerTool>, String> {
        let request = |page| ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
        match self.list(request).await {
            Err(Unanswered::UnknownMethod(_))
                if !self.offers(|offered| offered.tools.is_some()) =>
            {
                Ok((Arc::new([]), Vec::new()))
            }
            listed => Ok(listed?),
        }
    }

    /// Its resources, as [`Self::tools`] lists its tools; none if it has no such capability, or one that it does not
    /// know itself: some SDKs declare it for all servers.
    ///
    /// # Errors
    /// If the server does not list them.
    pub(in crate::tool) async fn resources(&self) -> Result<Listings<ServerResource>, String> {
        if !self.offers(|offered| offered.resources.is_some()) {
            return Ok((Arc::new([]), Vec::new()));
        }
        let request =
            |page| ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page));
        offered("resources", self.list(request).await)
    }

    /// Its prompts, as [`Self::resources`] lists its resources.
    ///
    /// # Errors
    /// If the server does not list them.
    pub(in crate::tool) async fn prompts(&self) -> Result<Listings<ServerPrompt>, String> {
        if !self.offers(|offered| offered.prompts.is_some()) {
            return Ok((Arc::new([]), Vec::new()));
        }
        let request =
            |page| ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page));
        offered("prompts", self.list(request).await)
    }

    async fn list<T: Listed>(
        &self,
        request: impl Fn(PaginatedRequestParams) -> ClientRequest,
    ) -> Result<Listings<T>, Unanswered> {
        let mut listing = Listing::default();
        let mut cursor = None;
        loop {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let result = self.ask(request(page), None).await?;
            match listing.add(result)? {
                Next::Page(next) => cursor = Some(next),
                Next::End => break,
            }
        }
        Ok(listing.finish())
    }

    /// The contents of a resource, as the server wrote them.
    ///
    /// # Errors
    /// If there are none.
    pub(in crate::tool) async fn resource(&self, uri: String) -> Result<Value, String> {
        if !self.offers(|offered| offered.resources.is_some()) {
            return Err("it has no resources".to_owned());
        }
        if uri.len() > URI_BYTES_MAX {
            return Err(format!("an address of a resource has at most {URI_BYTES_MAX} bytes"));
        }
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
        Ok(self.ask(ClientRequest::ReadResourceRequest(request), None).await?)
    }

    /// A prompt made of `arguments`, as the server wrote it.
    ///
    /// # Errors
    /// If there is none.
    pub(in crate::tool) async fn prompt(
        &self,
        name: String,
        arguments: Map<String, Value>,
    ) -> Result<Value, String> {
        if !self.offers(|offered| offered.prompts.is_some()) {
            return Err("it has no prompts".to_owned());
        }
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        Ok(self.ask(request, None).await?)
    }

    /// Whether the server has said that it has a capability.
    fn offers(&self, has: impl Fn(&ServerCapabilities) -> bool) -> bool {
        self.peer.peer_info().is_some_and(|server| has(&server.capabilities))
    }

    /// Calls a tool. Returns its result as the server wrote it; `newest` gets its progress.
    ///
    /// # Errors
    /// If there is none.
    pub(in crate::tool) async fn call(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        newest: Newest,
    ) -> Result<Value, String> {
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        let request = CallToolRequest::new(params);
        let called = self.ask(ClientRequest::CallToolRequest(request), Some(newest)).await;
        called.map_err(|why| format!("the call failed: {}", String::from(why)))
    }
}

/// `what` a server offers to people, by its answer.
fn offered<T>(what: &str, listed: Result<Listings<T>, Unanswered>) -> Result<Listings<T>, String> {
    match listed {
        Ok(listed) => Ok(listed),
        Err(Unanswered::UnknownMethod(_)) => Ok((Arc::new([]), Vec::new())),
        Err(Unanswered::Failed(why)) => Err(format!("its {what} can't be listed: {why}")),
    }
}
