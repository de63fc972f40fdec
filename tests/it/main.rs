//! The program as its users meet it: the real binary over real pipes.

// Programs of others that tests need.
#[macro_use]
mod needs;

// The harness: starts the binary, collects what it says, and asks the oracle at the end.
mod server;

// A frame, as a test asks about it, and request lines.
mod frames;

// What every conversation must be, whatever happened in it.
mod oracle;

// What the system reports about a process.
mod printed;
mod process;

// A provider whose timing and faults are written down, and what real ones want of a request.
mod provider;
mod provider_quirks;
mod refused_parts;
mod request_rules;
#[path = "../rules/mod.rs"]
mod rules;

// The other engines, what each engine can do, and what each survives.
mod anthropic;
mod engine_faults;
mod gemini;
mod interface;
mod io_faults;
mod ollama;
mod openai_requests;
mod provider_table;
mod recorded_streams;
mod responses;

// Settings, models and schemas of a turn; counts, costs and retries.
mod chosen_models;
mod structured;

// Members of JSON objects stay in the order in which they were written.
mod member_order;

// Options and values that people know from Pinocchio.
mod pinocchio_options;
mod pinocchio_values;

// The front end for editors, and its client.
mod acp;
mod acp_client;
mod acp_clients;
mod acp_compaction;
mod acp_schema;
mod acp_sessions;
mod acp_slow;
mod acp_tools;

// A node of a fleet, and its clients.
#[cfg(feature = "serve")]
mod manifests;
#[cfg(feature = "serve")]
#[path = "../../benches/reference/paced_provider.rs"]
mod paced_provider;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod serve_browser;
#[cfg(feature = "serve")]
mod serve_clients;
#[cfg(feature = "serve")]
mod serve_fleet;
#[cfg(feature = "serve")]
mod serve_forwarded;
#[cfg(feature = "serve")]
mod serve_http;
#[cfg(feature = "serve")]
mod serve_limits;
#[cfg(feature = "serve")]
mod serve_load;
#[cfg(feature = "serve")]
mod serve_node;
#[cfg(feature = "serve")]
mod serve_signed;
#[cfg(feature = "serve")]
mod serve_tenants;
#[cfg(feature = "serve")]
mod serve_tools;
#[cfg(feature = "serve")]
mod serve_traces;
#[cfg(feature = "serve")]
mod serve_watched;

// Runs, requests and their ends, one process long.
mod compaction;
mod event_lists;
mod heartbeats;
mod lean_patches;
mod lifecycle;

// A cancel acts at once, wherever the run is.
mod cancel;

// Input as nobody should write it.
mod input;

// Output that is read slowly, late or not at all.
mod slow_reader;

// Files of requests that a file system does not give.
mod slow_files;

// Memory stays bounded while nobody reads.
mod memory;

// Standard input and output belong to the protocol alone.
mod stdio;

// Named pipes and standard streams where files are expected, and what a log says.
mod named_files;
mod no_provider;

// What a provider can do wrong, and what the client is sent.
mod providers;
mod proxies;
mod socks;

// Signals end the process in order, or at once.
mod signals;

// Standard error that nobody reads.
mod stderr_unread;

// Limits that the system sets: threads, descriptors, file sizes.
mod system_limits;

// Files that are written: by whom they can be read, and when they are left alone.
mod written_files;

// Defects planted in the program cost only what they must.
mod defects;

// Thousands of turns, and answers of many pieces.
mod log_rows;
mod long;
mod soak;

// The session of the protocol's documentation, word for word.
mod session_over_pipes;

// Tools of the client, prompts that join a run, cancels of one request.
mod tool_calls;

// Modules of the program use only those before them.
mod layers;

// Profiles, prompts by name, keys, and settings of calls.
mod doctor;
mod doctor_stores;
mod named_prompts;
mod profile_commands;
mod profile_defaults;
mod profile_keys;
mod profile_limits;
mod profile_trust;
mod profiles;

// Options, their variables, help, and how the command line is refused.
mod options;

// Tools that the client runs.
mod client_tools;

// Images and files that go with a prompt: of clients, and of options.
mod attachment_options;
mod attachments;

// Tools of MCP servers in a conversation.
mod tool_images;
mod tool_runs;

// Prompts that join a run, and cancels that name what they stop.
mod steering;

// What shells offer when the tab key is pressed.
mod completions;

// Wrong command lines, and what to write instead.
mod tips;

// How soon an answer begins.
mod timing;

// Programs that are not ours on both sides of the binary.
mod clients;

// MCP servers as tools, and one with faults.
mod mcp_command;
mod mcp_ends;
mod mcp_fixture;
mod mcp_fixture_docs;
mod mcp_fixture_odd;
mod mcp_floods;
mod mcp_guarantees;
mod mcp_http;
mod mcp_odd;
mod mcp_offers;
mod mcp_progress;
mod mcp_resources;
mod mcp_servers;

// Logins at MCP servers, and a server that requires one.
mod mcp_login;
mod oauth_server;

// The numbers and types of the fields on the wire.
mod wire_fields;

// Conversations that are stored, and go on.
mod edits;
mod sessions;
mod sessions_damage;
mod sessions_export;
mod store;
mod store_apart;
mod store_choices;
mod store_damage;
mod store_faults;
mod store_kills;
mod store_long;
mod store_memory;
mod store_named;
mod store_places;
mod store_resumed;
mod store_shared;
mod store_stopped;
mod store_unnamed;

// Sessions that are made of others, and of recorded lines.
mod sessions_new;

// The same on a PostgreSQL server.
mod postgres;
mod postgres_damage;
mod postgres_faults;
mod postgres_links;
mod postgres_lists;
mod postgres_server;

// The examples, run as a reader would run them.
mod examples;

// Conversations inside another program.
mod embedding;
mod rust_client;

// What a person at a terminal sees.
mod chat;
mod chat_commands;
mod chat_completion;
mod chat_document;
mod chat_drawing;
mod chat_edits;
mod chat_ends;
mod chat_errors;
mod chat_files;
mod chat_keys;
mod chat_lines;
mod chat_questions;
mod chat_shell;
mod chat_tmux;
mod saved;
mod screen;
mod single_runs;
mod terminal;
mod vt;

// What a prompt is made of, and standard input that is none of it.
mod prompts;

// Command files: renderings, and the examples.
mod command_files;

// Files that command files read, in bounded memory.
mod command_memory;

// Conversations that something was said in before.
mod history;

// The transcripts of the README and the documents, and what the documents have to name.
mod documents;
mod picture;
mod readme;

// What the tests of the tools share.
mod tools;

// Streams are checked against the contract.
mod tools_check;

// Events are listed as lines, or in one object.
mod tools_list_events;

// Schemas, the manifest, completions and manuals.
mod tools_describe;

// The harness of a single run, what its outputs must be, and what its events must be.
mod golden;
mod once;
mod shape;
mod stream_events;

// Every output of a single run, for every way in which it can end.
mod outputs;

// What each output is if there is nothing that can be asked.
mod outputs_wrong;

// Signals, readers and devices that end a single run, and the copy of its frames.
mod outputs_ends;

// The examples of the documents that this program implements.
mod seeds;

// An answer that is only passed on is not kept.
mod outputs_memory;
