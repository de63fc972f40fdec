//! Every event comes back equal.

use super::*;
use crate::conversation::choices::{Choices, ChosenModel};
use crate::conversation::event::{
    Answerer, Attachments, CallProgress, Ending, FinishClass, ProviderData, Segment, SegmentKind,
    ToolResult, Usage,
};
use crate::conversation::tool_images::png_of_bytes;
use crate::conversation::transcript::{HistoryMessage, Preamble, Turn, TurnItem, TurnState};
use crate::conversation::usage::{Cost, Spent};
use crate::protocol::any::Struct;
use crate::protocol::attachment::{Attachment, Content};
use crate::protocol::id::{Ids, ToolCallId};
use crate::protocol::proto::chat::{ChatAttachment, ChatMessageEntity};
use crate::protocol::proto::frontendtools::FrontendToolManifestUpdated;
use crate::protocol::proto::provider::ModelSwitched;
use crate::protocol::proto::rpc::SnapshotEntity;
use crate::protocol::proto::session::{
    BudgetNearlySpent, CompactionProposed, CompactionStarted, StoreDegraded, TokenCounts,
};
use crate::protocol::proto::tools::ToolServerChanged;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::sync::Arc;

fn text() -> impl Strategy<Value = String> {
    // Texts that are shared, others that are copied, and none.
    prop_oneof![".{0,8}", Just("long ".repeat(300))]
}

fn shared() -> impl Strategy<Value = Text> {
    text().prop_map(Text::from)
}

fn attachments() -> impl Strategy<Value = Attachments> {
    let content = prop_oneof![
        vec(any::<u8>(), 1..9).prop_map(|bytes| Content::Data(bytes.into())),
        "[0-9a-f]{64}".prop_map(|sha256| Content::Lost { sha256 }),
        "https://[a-z]{1,9}".prop_map(Content::Url),
    ];
    let attachment = (text(), content).prop_map(|(filename, content)| {
        let shown = ChatAttachment { filename, ..ChatAttachment::default() };
        Attachment { shown, content }
    });
    vec(attachment, 0..3).prop_map(Attachments::from)
}

fn tool() -> impl Strategy<Value = ToolCall> {
    (text(), text()).prop_map(|(id, name)| ToolCall { id: ToolCallId(id), name })
}

fn object() -> impl Strategy<Value = Struct> {
    let json = prop_oneof![
        Just("{}"),
        Just(r#"{"z":1,"a":{"c":null,"b":[1.5,true,"x"]}}"#),
        Just(r#"{"n":1e300,"m":-0.25,"":""}"#),
    ];
    json.prop_map(|json| serde_json::from_str(json).expect("an object"))
}

fn result() -> impl Strategy<Value = ToolResult> {
    let images = vec(32..64_usize, 1..3);
    let images = images.prop_map(|sizes| sizes.into_iter().map(png_of_bytes).collect());
    prop_oneof![
        text().prop_map(ToolResult::Success),
        text().prop_map(ToolResult::Error),
        (text(), images).prop_map(|(text, images)| ToolResult::WithImages { text, images }),
    ]
}

fn class() -> impl Strategy<Value = FinishClass> {
    proptest::sample::select(vec![
        FinishClass::Completed,
        FinishClass::MaxTokens,
        FinishClass::ToolCalls,
        FinishClass::ContentFilter,
        FinishClass::Cancelled,
        FinishClass::Failed,
        FinishClass::Other,
    ])
}

fn segment() -> impl Strategy<Value = Segment> {
    let kind = proptest::sample::select(vec![SegmentKind::Text, SegmentKind::Thinking]);
    (any::<u32>(), kind).prop_map(|(number, kind)| Segment { number, kind })
}

fn usage() -> impl Strategy<Value = Usage> {
    (any::<[i32; 5]>(), option::of(any::<i32>())).prop_map(|(counts, reasoning_tokens)| Usage {
        input_tokens: counts[0],
        output_tokens: counts[1],
        cached_tokens: counts[2],
        cache_creation_tokens: counts[3],
        cache_read_tokens: counts[4],
        reasoning_tokens,
    })
}

fn provider_data() -> impl Strategy<Value = ProviderData> {
    (text(), text(), text(), text()).prop_map(|(engine, host, model, json)| ProviderData {
        engine: engine.into(),
        host: host.into(),
        model: model.into(),
        json: json.into(),
    })
}

fn spent() -> impl Strategy<Value = Spent> {
    let cost = (any::<u128>(), text()).prop_map(|(picos, it)| (Cost(picos), Arc::from(it)));
    (any::<bool>(), option::of(cost)).prop_map(|(is_free, cost)| Spent { is_free, cost })
}

fn chosen() -> impl Strategy<Value = Option<Arc<Choices>>> {
    let model = (text(), any::<bool>()).prop_map(|(model, is_partial)| {
        let settings = serde_json::from_str(r#"{"temperature":0.5}"#).expect("an object");
        ChosenModel { model, is_partial, settings, ..ChosenModel::default() }
    });
    option::of(option::of(model).prop_map(|model| Choices { model, ..Choices::default() }.into()))
}

fn counts() -> impl Strategy<Value = TokenCounts> {
    (any::<u32>(), any::<u64>(), text()).prop_map(|(provider_calls, input_tokens, cost)| {
        TokenCounts { provider_calls, input_tokens, cost, ..TokenCounts::default() }
    })
}

fn turn() -> impl Strategy<Value = Turn> {
    let item = prop_oneof![
        (option::of(1..9_u32), shared()).prop_map(|(round, text)| TurnItem::Text { round, text }),
        (shared(), attachments())
            .prop_map(|(text, attachments)| TurnItem::Prompt(text, attachments)),
        provider_data().prop_map(TurnItem::ProviderData),
        (1..9_u32, tool(), text(), option::of(result())).prop_map(
            |(round, tool, input, result)| {
                TurnItem::Called { round, tool, input, result: result.map(Arc::new) }
            }
        ),
    ];
    let states = vec![TurnState::Finished, TurnState::Interrupted, TurnState::Refused];
    let state = proptest::sample::select(states);
    (shared(), attachments(), vec(item, 0..4), state).prop_map(
        |(prompt, attachments, items, state)| Turn { number: 3, prompt, attachments, items, state },
    )
}

fn of_prompts() -> impl Strategy<Value = Event> {
    let ending =
        || proptest::sample::select(vec![Ending::Finished, Ending::Stopped, Ending::Failed]);
    let entity = text().prop_map(|text| SnapshotEntity {
        kind: "ChatMessage".to_owned(),
        created_ordinal: 7,
        payload: Some(ChatMessageEntity { text, ..Default::default() }.into()),
        ..SnapshotEntity::default()
    });
    prop_oneof![
        (shared(), attachments())
            .prop_map(|(prompt, attachments)| Event::PromptAccepted { prompt, attachments }),
        (shared(), attachments(), any::<u32>()).prop_map(|(prompt, attachments, number)| {
            Event::PromptJoined { prompt, attachments, number }
        }),
        (text(), any::<u32>(), any::<u32>())
            .prop_map(|(reason, number, max)| Event::RepairRequested { reason, number, max }),
        (shared(), chosen(), text(), any::<Option<i64>>(), text()).prop_map(
            |(prompt, choices, model, started_ms, request)| {
                let answerer = Answerer { engine: model.as_str().into(), model, started_ms };
                Event::RunStarted { prompt, choices, answerer, request: request.into() }
            }
        ),
        (segment(), shared())
            .prop_map(|(segment, prompt)| Event::SegmentStarted { segment, prompt }),
        (segment(), any::<u64>(), any::<u64>(), text()).prop_map(
            |(segment, sequence, offset_bytes, text)| Event::SegmentPatched {
                segment,
                sequence,
                offset_bytes,
                text
            }
        ),
        (segment(), ending(), shared(), shared(), text(), any::<bool>()).prop_map(
            |(segment, status, prompt, text, finish_reason, is_cut_off)| Event::SegmentFinished {
                segment,
                status,
                prompt,
                text,
                finish_reason,
                is_cut_off
            }
        ),
        (any::<u64>(), option::of(text()))
            .prop_map(|(duration_ms, cut_off)| Event::RunFinished { duration_ms, cut_off }),
        text().prop_map(|reason| Event::RunStopped { reason }),
        text().prop_map(|error| Event::RunFailed { error }),
        (vec(text(), 0..3), vec(text(), 0..3), vec(any::<u32>(), 0..3)).prop_map(
            |(message_ids, tool_call_ids, turns)| Event::TurnDropped {
                message_ids,
                tool_call_ids,
                turns
            }
        ),
        (vec(entity, 0..3), option::of(turn())).prop_map(|(entities, turn)| {
            Event::TurnImported(Box::new(ImportedTurn { entities, turn: turn.map(Arc::new) }))
        }),
    ]
}

fn of_tools() -> impl Strategy<Value = Event> {
    let decision = prop_oneof![
        Just(Decision::AllowOnce),
        Just(Decision::AllowSession),
        text().prop_map(|reason| Decision::Deny { reason }),
    ];
    prop_oneof![
        tool().prop_map(|tool| Event::ToolCallStarted { tool }),
        (tool(), any::<u64>(), any::<u64>(), text()).prop_map(
            |(tool, sequence, offset_bytes, text)| Event::ToolArgumentsPatched {
                tool,
                sequence,
                offset_bytes,
                text
            }
        ),
        (tool(), text()).prop_map(|(tool, input)| Event::ToolCallRequested { tool, input }),
        (tool(), text(), text()).prop_map(|(tool, server, input)| Event::ApprovalRequested {
            tool,
            server,
            input
        }),
        (tool(), decision).prop_map(|(tool, decision)| Event::ApprovalResolved { tool, decision }),
        (tool(), 0.0..1e9, option::of(0.0..1e9), text()).prop_map(
            |(tool, progress, total, message)| {
                let progress = CallProgress { progress, total, message };
                Event::ToolProgressed { tool, progress }
            }
        ),
        (tool(), object(), any::<bool>()).prop_map(|(tool, input, is_human)| {
            Event::ClientCallRequested { tool, input, is_human }
        }),
        (tool(), option::of(object()), text())
            .prop_map(|(tool, result, error)| Event::ClientResultReceived { tool, result, error }),
        (tool(), text()).prop_map(|(tool, input)| Event::ToolExecutionStarted { tool, input }),
        (tool(), result())
            .prop_map(|(tool, result)| Event::ToolResultReady { tool, result: result.into() }),
        (tool(), text())
            .prop_map(|(tool, partial_input)| Event::ToolCallFinished { tool, partial_input }),
    ]
}

fn of_calls() -> impl Strategy<Value = Event> {
    let timed = option::of(any::<u64>());
    let report = prop_oneof![
        (any::<u32>(), any::<u32>(), any::<u64>(), text(), text()).prop_map(
            |(attempt, attempts_max, wait_ms, error_class, reason)| CallReport::RetryScheduled {
                attempt,
                attempts_max,
                wait_ms,
                error_class,
                reason
            }
        ),
        (any::<u32>(), any::<u32>())
            .prop_map(|(attempt, attempts_max)| CallReport::RetryStarted { attempt, attempts_max }),
        (text(), class())
            .prop_map(|(stop_reason, class)| CallReport::Truncated { stop_reason, class }),
        (timed.clone(), timed).prop_map(|(first_byte_ms, first_token_ms)| CallReport::Timed {
            first_byte_ms,
            first_token_ms
        }),
        (counts(), counts(), counts()).prop_map(|(call, run, session)| {
            CallReport::Counted(Box::new(CallCounts { call, run, session }))
        }),
        (text(), text()).prop_map(|(cost, budget)| {
            let (currency, correlation) = ("USD".to_owned(), None);
            CallReport::BudgetNearlySpent(Box::new(BudgetNearlySpent {
                cost,
                budget,
                currency,
                correlation,
            }))
        }),
    ];
    prop_oneof![
        Just(Event::CallStarted),
        (text(), usage())
            .prop_map(|(stop_reason, usage)| Event::CallMetadataUpdated { stop_reason, usage }),
        (
            (text(), class(), option::of(usage()), any::<u64>()),
            (any::<bool>(), option::of(provider_data()), spent())
        )
            .prop_map(|((stop_reason, class, usage, duration_ms), rest)| {
                let (has_tool_calls, provider_data, spent) = rest;
                Event::CallFinished {
                    stop_reason,
                    class,
                    usage,
                    duration_ms,
                    has_tool_calls,
                    provider_data,
                    spent,
                }
            }),
        report.prop_map(Event::Call),
    ]
}

fn of_compactions() -> impl Strategy<Value = Event> {
    let counts = || (0..4_i32, any::<u64>(), any::<u64>());
    let event = prop_oneof![
        counts().prop_map(|(cause, tokens, context_tokens)| {
            let correlation = None;
            let proposed = CompactionProposed { cause, tokens, context_tokens, correlation };
            CompactionEvent::Proposed(proposed.into())
        }),
        counts().prop_map(|(cause, tokens, context_tokens)| {
            let correlation = None;
            let started = CompactionStarted { cause, tokens, context_tokens, correlation };
            CompactionEvent::Started(started.into())
        }),
        (any::<u32>(), shared(), vec(text(), 0..3), any::<[u64; 2]>()).prop_map(
            |(through, summary, cleared, [tokens_before, tokens_after])| {
                let cleared = cleared.into_iter().map(ToolCallId).collect();
                let made = Compaction { through, summary, cleared, tokens_before, tokens_after };
                CompactionEvent::Done(made.into())
            }
        ),
        text().prop_map(|reason| CompactionEvent::Failed { reason }),
    ];
    event.prop_map(Event::Compaction)
}

fn of_session() -> impl Strategy<Value = Event> {
    let event = prop_oneof![
        chosen().prop_map(|choices| {
            let tools = FrontendToolManifestUpdated::default();
            SessionEvent::ToolsDeclared { tools, choices }
        }),
        (text(), chosen()).prop_map(|(model, choices)| {
            let model = ModelSwitched { model, ..ModelSwitched::default() };
            SessionEvent::ModelSwitched { model, choices }
        }),
        text().prop_map(|server| {
            SessionEvent::ServerChanged(ToolServerChanged { server, ..Default::default() })
        }),
        (text(), any::<u64>()).prop_map(|(reason, first_missing_ordinal)| {
            SessionEvent::StoreDegraded(StoreDegraded { reason, first_missing_ordinal })
        }),
        text().prop_map(SessionEvent::Renamed),
    ];
    event.prop_map(Event::Session)
}

fn row() -> impl Strategy<Value = Vec<Recorded>> {
    let event = prop_oneof![of_prompts(), of_tools(), of_calls(), of_compactions(), of_session()];
    vec((any::<u64>(), 0..3_u64, 0..3_u32, event), 1..12).prop_map(|events| {
        let recorded = events.into_iter().map(|(ordinal, run, call, event)| {
            let is_outside = matches!(event, Event::Session(_));
            let run = Ids::new(run.into()).run();
            let scope = if is_outside { Scope::OUTSIDE } else { Scope { run, turn: 3, call } };
            Recorded { ordinal: Ordinal(ordinal), scope, event }
        });
        recorded.collect()
    })
}

fn written(events: &[Recorded]) -> (Vec<u8>, Blobs) {
    let (mut row, mut blobs) = (RowWriter::default(), Blobs::new());
    for recorded in events {
        row.add(recorded);
        add_blobs(&recorded.event, &mut blobs);
    }
    (row.finish().to_vec(), blobs)
}

proptest! {
    #[test]
    fn every_event_comes_back_equal(events in row()) {
        let (row, blobs) = written(&events);
        let read = RowReader::new(&row, &blobs).collect::<Result<Vec<_>, _>>();
        prop_assert_eq!(read.as_ref(), Ok(&events));
    }

    #[test]
    fn bytes_that_are_no_row_are_an_error_at_most(bytes in vec(any::<u8>(), 0..200)) {
        let blobs = Blobs::new();
        // What can't be read ends it.
        let events: Vec<_> = RowReader::new(&bytes, &blobs).collect();
        let is_last = |at| at + 1 == events.len();
        let is_message = |event: &Result<_, _>| matches!(event, Err(Unreadable::Message(_)));
        prop_assert!(events.iter().position(is_message).is_none_or(is_last));
    }

    #[test]
    fn what_a_session_begins_with_comes_back_equal(system in option::of(text()), said in text()) {
        let history = vec![
            HistoryMessage::ByUser(said.clone()),
            HistoryMessage::ByModel(said.clone()),
            HistoryMessage::BySystem(said),
        ];
        let preamble = Preamble { system, history };
        let session = SessionId::new("s").expect("an id");
        let start = SessionStart { preamble, ..SessionStart::empty(session.clone()) };
        let bytes = start_message(&start).encode_to_vec();
        prop_assert_eq!(read_start(&session, &bytes), Ok(start));
    }
}

/// A row has the prompt of its run once, however many events repeat it.
#[test]
fn a_prompt_is_in_a_row_once() {
    let prompt = || Text::from("why? ".repeat(1000));
    let scope = Scope { run: Ids::new(1).run(), turn: 1, call: 0 };
    let segment = Segment { number: 1, kind: SegmentKind::Text };
    let finished = Event::SegmentFinished {
        segment,
        status: Ending::Finished,
        prompt: prompt(),
        text: Text::default(),
        finish_reason: String::new(),
        is_cut_off: false,
    };
    let events = [
        Event::PromptAccepted { prompt: prompt(), attachments: Attachments::default() },
        Event::RunStarted {
            prompt: prompt(),
            choices: None,
            answerer: Answerer::default(),
            request: Text::default(),
        },
        Event::SegmentStarted { segment, prompt: prompt() },
        finished,
    ];
    let recorded = events.map(|event| Recorded { ordinal: Ordinal(1), scope, event });
    let (row, blobs) = written(&recorded);
    assert!(row.len() < prompt().len() + 200, "{}", row.len());
    let read = RowReader::new(&row, &blobs).collect::<Result<Vec<_>, _>>();
    assert_eq!(read.as_deref(), Ok(&recorded[..]));
}

/// Every member of the stored form has an event: a kind that can't be read would end a conversation.
#[test]
fn every_kind_that_is_written_can_be_read() {
    let files = prost_types::FileDescriptorSet::decode(crate::protocol::proto::DESCRIPTORS);
    let files = files.expect("descriptors").file;
    let mut messages = files.into_iter().flat_map(|file| file.message_type);
    let event = messages.find(|message| message.name() == "StoredEvent").expect("the message");
    let members: Vec<_> = event.field.iter().filter(|it| it.oneof_index.is_some()).collect();
    for member in &members {
        // The member with no bytes in it, as a message or a text without fields.
        let mut bytes = Vec::new();
        let scope = scope_message(Scope::OUTSIDE);
        stored::StoredEvent { scope: Some(scope), ..Default::default() }
            .encode(&mut bytes)
            .expect("room");
        prost::encoding::encode_key(
            u32::try_from(member.number()).expect("a number"),
            prost::encoding::WireType::LengthDelimited,
            &mut bytes,
        );
        bytes.push(0);
        let mut row = Pieces::default();
        row.message(tag::EVENTS, Pieces::from(bytes));
        let blobs = Blobs::new();
        let row = row.to_vec();
        let event = RowReader::new(&row, &blobs).next().expect("an event");
        let is_unknown = event == Err(Unreadable::Value("a kind of event"));
        assert!(!is_unknown, "{}", member.name());
    }
    assert_eq!(members.len(), 41);
}
