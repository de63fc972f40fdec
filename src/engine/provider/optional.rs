//! Parts of a request that a call can do without. A server that refuses one gets the request once more
//! without it; if that was a guess and is refused, too, a third time without the schema. If the refusal named the part,
//! later requests of this process go to that server without it; if the part was a guess, they do after the second such
//! refusal. A refusal of this very content says nothing about later requests. Pure, but for what was refused so far.

use super::tool::wire_name;
use crate::conversation::tool::ToolSpec;
use crate::conversation::transcript::{Message, Transcript};
use crate::engine::{CallSettings, CallSpec, StructuredMode};
use crate::support::lock;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Refusals that are remembered. Past it, a refused part costs a request at each call.
const REFUSED_MAX: usize = 1_024;

/// Called tools that are declared as not available; further ones are not declared.
const UNAVAILABLE_MAX: usize = 50;

/// Parts of a request that a call can do without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct OptionalParts {
    /// Members that ask for more than the answer, as token counts or encrypted reasoning.
    pub(in crate::engine) members: bool,
    /// Provider data of an earlier answer: reasoning, signatures, ids, phases.
    pub(in crate::engine) provider_data: bool,
    /// The schema of the answer in a member of its own. The prompt has it then.
    pub(in crate::engine) schema: bool,
    /// Images in the results of tools. The results have notes on them then.
    pub(in crate::engine) tool_images: bool,
    /// Answers that say nothing of their reasoning, as those of another model do. They say then that there is
    /// none.
    pub(in crate::engine) unsaid_reasoning: bool,
    /// Calls in a request that declares no tools, as those of tools that are gone. The tools are declared as not
    /// available then.
    pub(in crate::engine) undeclared_tools: bool,
}

/// Parts that a refusal may be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Suspects {
    pub(in crate::engine) parts: OptionalParts,
    pub(in crate::engine) ground: Ground,
}

/// Why parts are suspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Ground {
    /// The words of the refusal name them.
    Named,
    /// The words are about the form of the request. The refusal may also have been one by chance, and the request
    /// taken the next time as it was.
    Guessed,
    /// The words name them, and are about the very content of this request: one image is too large or damaged, and
    /// the next request may hold another.
    ThisRequest,
}

/// What is known of a part that was left out of a request which was taken then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It was a guess, for the first time.
    Suspected,
    /// Requests go without it.
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Members,
    ProviderData,
    Schema,
    ToolImages,
    UnsaidReasoning,
    UndeclaredTools,
}

/// A part that the server at a host refused for a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Refusal {
    host: String,
    /// Empty where the model doesn't matter.
    model: String,
    part: Part,
}

/// The parts that servers have refused.
static REFUSED: Mutex<BTreeMap<Refusal, Standing>> = Mutex::new(BTreeMap::new());

impl OptionalParts {
    /// The parts that the server at `host` has refused for `model`.
    pub(in crate::engine) fn refused_by(host: &str, model: &str) -> Self {
        let refused = lock(&REFUSED);
        let is_refused =
            |part| refused.get(&Refusal::new(host, model, part)) == Some(&Standing::Refused);
        Self {
            members: is_refused(Part::Members),
            provider_data: is_refused(Part::ProviderData),
            schema: is_refused(Part::Schema),
            tool_images: is_refused(Part::ToolImages),
            unsaid_reasoning: is_refused(Part::UnsaidReasoning),
            undeclared_tools: is_refused(Part::UndeclaredTools),
        }
    }

    /// The union of both sets.
    pub(in crate::engine) fn and(self, other: Self) -> Self {
        Self {
            members: self.members || other.members,
            provider_data: self.provider_data || other.provider_data,
            schema: self.schema || other.schema,
            tool_images: self.tool_images || other.tool_images,
            unsaid_reasoning: self.unsaid_reasoning || other.unsaid_reasoning,
            undeclared_tools: self.undeclared_tools || other.undeclared_tools,
        }
    }

    pub(in crate::engine) fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Whether these are the images in the results of tools, and nothing else.
    pub(in crate::engine) fn are_tool_images(self) -> bool {
        self == Self { tool_images: true, ..Self::default() }
    }

    /// `spec` without those that are not members of their own.
    pub(in crate::engine) fn left_out_of(self, spec: &CallSpec) -> CallSpec {
        let mut spec = spec.clone();
        if self.provider_data {
            spec.transcript.leave_out_provider_data();
        }
        if self.tool_images {
            spec.transcript.leave_out_tool_images();
        }
        if self.undeclared_tools && spec.tools.is_empty() {
            spec.tools = unavailable_tools(&spec.transcript);
        }
        // Where the settings ask for the member, they are obeyed.
        if self.schema && spec.settings.structured.is_none() {
            let structured = Some(StructuredMode::Prompt);
            spec.settings = Arc::new(CallSettings { structured, ..(*spec.settings).clone() });
        }
        spec
    }

    /// `body` without the members `names`, if these are to be left out. Other members stay as they
    /// are written.
    ///
    /// # Errors
    /// If it is no object.
    pub(in crate::engine) fn left_out_of_body(
        self,
        body: Vec<u8>,
        names: &[&str],
    ) -> Result<Vec<u8>, serde_json::Error> {
        if !self.members || names.is_empty() {
            return Ok(body);
        }
        let mut members: BTreeMap<String, &RawValue> = serde_json::from_slice(&body)?;
        members.retain(|name, _| !names.contains(&name.as_str()));
        serde_json::to_vec(&members)
    }

    /// The parts, for a line of the log; `names` are those of the members.
    pub(in crate::engine) fn words(self, names: &[&str]) -> String {
        let words = self.parts().map(|part| match part {
            Part::Members => names.join(", "),
            Part::ProviderData => "the reasoning of earlier answers".to_owned(),
            Part::Schema => "the schema of the answer, which the prompt has instead".to_owned(),
            Part::ToolImages => "the images in the results of tools".to_owned(),
            Part::UnsaidReasoning => {
                "answers without their reasoning, which is sent empty instead".to_owned()
            }
            Part::UndeclaredTools => {
                "calls of tools that are gone, which are declared as not available instead"
                    .to_owned()
            }
        });
        let words = words.filter(|words| !words.is_empty());
        words.collect::<Vec<_>>().join("; ")
    }

    fn parts(self) -> impl Iterator<Item = Part> {
        let all = [
            (Part::Members, self.members),
            (Part::ProviderData, self.provider_data),
            (Part::Schema, self.schema),
            (Part::ToolImages, self.tool_images),
            (Part::UnsaidReasoning, self.unsaid_reasoning),
            (Part::UndeclaredTools, self.undeclared_tools),
        ];
        all.into_iter().filter_map(|(part, is_in)| is_in.then_some(part))
    }
}

/// The tools that are called in a conversation, with the names that the calls are sent with.
fn unavailable_tools(transcript: &Transcript) -> Arc<[ToolSpec]> {
    let messages = transcript.messages();
    let calls = messages.iter().flat_map(|message| match message {
        Message::Assistant { calls, .. } => calls.as_slice(),
        Message::System(_) | Message::User { .. } | Message::Tool { .. } => &[],
    });
    let names: BTreeSet<_> = calls.map(|(tool, _)| wire_name(&tool.name)).collect();
    let tools = names.into_iter().take(UNAVAILABLE_MAX).map(|name| ToolSpec {
        name: name.into_owned(),
        description: "Not available.".to_owned(),
        input_schema: Arc::default(),
    });
    tools.collect()
}

impl Suspects {
    /// The parts that a refusal names.
    pub(in crate::engine) fn named(parts: OptionalParts) -> Self {
        Self { parts, ground: Ground::Named }
    }

    /// The parts among them that a request of `spec` can be sent without: a refusal of one without a schema says
    /// nothing of schemas, and where the settings ask for the member, they are obeyed.
    pub(in crate::engine) fn within(self, spec: &CallSpec) -> Self {
        let is_optional = spec.schema.is_some() && spec.settings.structured.is_none();
        let schema = self.parts.schema && is_optional;
        Self { parts: OptionalParts { schema, ..self.parts }, ..self }
    }

    /// The steps in which they are left out until a request is taken. Where they are a guess, the schema comes last:
    /// it is the only one that a person misses in the answer.
    pub(in crate::engine) fn steps(self) -> impl Iterator<Item = Self> {
        let none = OptionalParts::default();
        let steps = match self.ground {
            Ground::Guessed => [
                OptionalParts { schema: false, ..self.parts },
                OptionalParts { schema: self.parts.schema, ..none },
            ],
            Ground::Named | Ground::ThisRequest => [self.parts, none],
        };
        let steps = steps.into_iter().filter(|parts| !parts.is_empty());
        steps.map(move |parts| Self { parts, ..self })
    }

    /// Remembers that the server at `host` has refused a request for `model` with these, and has taken it without
    /// them.
    pub(in crate::engine) fn remember(self, host: &str, model: &str) {
        let mut refused = lock(&REFUSED);
        for part in self.parts.parts() {
            let refusal = Refusal::new(host, model, part);
            let standing = match (self.ground, refused.get(&refusal)) {
                (Ground::ThisRequest, _) => continue,
                (Ground::Guessed, None) => Standing::Suspected,
                (Ground::Named, _) | (Ground::Guessed, Some(_)) => Standing::Refused,
            };
            if refused.len() < REFUSED_MAX || refused.contains_key(&refusal) {
                refused.insert(refusal, standing);
            }
        }
    }

    /// Forgets what was a guess: the server at `host` has taken a request for `model` as it was. Otherwise two
    /// refusals by chance, however long apart, would cost a long-lived process these parts.
    pub(in crate::engine) fn forget_guesses(host: &str, model: &str) {
        let mut refused = lock(&REFUSED);
        refused.retain(|refusal, standing| {
            *standing == Standing::Refused || !refusal.is_of(host, model)
        });
    }
}

impl Refusal {
    fn is_of(&self, host: &str, model: &str) -> bool {
        self.host == host && (self.model.is_empty() || self.model == model)
    }

    fn new(host: &str, model: &str, part: Part) -> Self {
        // Models of a router have rules of their own, but all requests are parsed by the router.
        let model = match part {
            Part::Members => "",
            Part::ProviderData
            | Part::Schema
            | Part::ToolImages
            | Part::UnsaidReasoning
            | Part::UndeclaredTools => model,
        };
        Self { host: host.to_owned(), model: model.to_owned(), part }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_remembered_for_its_server() {
        let all = OptionalParts {
            members: true,
            provider_data: true,
            schema: true,
            tool_images: true,
            unsaid_reasoning: true,
            undeclared_tools: true,
        };
        let none = OptionalParts::default();
        assert_eq!(OptionalParts::refused_by("h.example", "m"), none);
        Suspects::named(all).remember("h.example", "m");
        assert_eq!(OptionalParts::refused_by("h.example", "m"), all);
        let members = OptionalParts { members: true, ..none };
        assert_eq!(OptionalParts::refused_by("h.example", "other"), members);
        assert_eq!(OptionalParts::refused_by("other.example", "m"), none);
        assert!(none.is_empty() && !members.is_empty());
        assert_eq!(none.and(members), members);
    }

    /// A server may refuse a request by chance, and take the next one as it is.
    #[test]
    fn a_guess_is_remembered_after_the_second_refusal_in_a_row() {
        let (host, none) = ("guess.example", OptionalParts::default());
        let parts = OptionalParts { members: true, tool_images: true, ..none };
        let guess = Suspects { parts, ground: Ground::Guessed };
        guess.remember(host, "m");
        assert_eq!(OptionalParts::refused_by(host, "m"), none);
        Suspects::forget_guesses(host, "m");
        guess.remember(host, "m");
        assert_eq!(OptionalParts::refused_by(host, "m"), none);
        Suspects::forget_guesses("other.example", "m");
        guess.remember(host, "m");
        assert_eq!(OptionalParts::refused_by(host, "m"), parts);
        Suspects::forget_guesses(host, "m");
        assert_eq!(OptionalParts::refused_by(host, "m"), parts);
    }

    #[test]
    fn a_refusal_of_the_very_content_is_not_remembered() {
        let (host, none) = ("content.example", OptionalParts::default());
        let parts = OptionalParts { tool_images: true, ..none };
        let refusal = Suspects { parts, ground: Ground::ThisRequest };
        refusal.remember(host, "m");
        refusal.remember(host, "m");
        assert_eq!(OptionalParts::refused_by(host, "m"), none);
    }

    #[test]
    fn members_are_left_out_and_the_others_stay_as_they_are() {
        let members = OptionalParts { members: true, ..OptionalParts::default() };
        let body = br#"{"a": {"z":1, "b":2.50},"stream_options":{},"include":[]}"#.to_vec();
        let names = ["stream_options", "include"];
        let left = members.left_out_of_body(body.clone(), &names).expect("an object");
        assert_eq!(left, br#"{"a":{"z":1, "b":2.50}}"#);
        let whole = OptionalParts::default().left_out_of_body(body.clone(), &names);
        assert_eq!(whole.expect("an object"), body);
        assert_eq!(members.left_out_of_body(body.clone(), &[]).expect("an object"), body);
    }
}
