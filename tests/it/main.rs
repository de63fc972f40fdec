//! The program as its users meet it: the real binary over real pipes.

// ---- The harness ----

// Programs of others that tests need.
#[macro_use]
mod needs;

// Starts the binary, collects what it says, and asks the oracle at the end; the oracle has what every conversation
// must be.
mod frames;
mod oracle;
mod process;
mod server;

// A single run, what its outputs must be, and what its events must be.
mod golden;
mod once;
mod shape;
mod stream_events;

// A provider whose timing and faults are written down, and what real ones want of a request; a proxy.
mod interface;
#[cfg(feature = "serve")]
#[path = "../../benches/reference/paced_provider.rs"]
mod paced_provider;
mod provider;
#[path = "../rules/mod.rs"]
mod rules;
mod socks;

// MCP servers with faults, and one that requires a login.
mod mcp_fixture;
mod mcp_fixture_docs;
mod mcp_fixture_odd;
mod oauth_server;

// Terminals.
mod screen;
mod vt;

// Stores: a PostgreSQL server, and the rows of a log.
mod log_rows;
mod postgres_server;

// Clients: of `acp`, of a node of a fleet, and of the commands that are tools.
mod acp_client;
#[cfg(feature = "serve")]
mod serve_node;
mod tools;

// ---- The areas, about in the order of the modules in ARCHITECTURE.md ----

// The source: modules use only those before them.
mod layers;

// The protocol: numbers and types of fields, its documentation word for word, the order of members, and checks of
// streams.
mod member_order;
mod session_over_pipes;
mod tools_check;
mod tools_list_events;
mod wire_fields;

// Runs, requests and their ends, one process long.
mod cancel;
mod event_lists;
mod heartbeats;
mod input;
mod lean_patches;
mod lifecycle;
mod steering;
mod timing;

// Turns: settings, models, schemas, images and files; what was said before, what is edited, and what is compacted.
mod attachment_options;
mod attachments;
mod chosen_models;
mod compaction;
mod edits;
mod history;
mod structured;

// Tools of the client, and calls that wait for approval.
mod client_tools;
mod tool_calls;

// Engines and providers: what each can do, what each survives, and what they are sent.
mod anthropic;
mod engine_faults;
mod gemini;
mod no_provider;
mod ollama;
mod openai_requests;
mod provider_quirks;
mod provider_table;
mod providers;
mod proxies;
mod recorded_streams;
mod refused_parts;
mod request_rules;
mod responses;

// Tools of MCP servers.
mod mcp_command;
mod mcp_ends;
mod mcp_floods;
mod mcp_guarantees;
mod mcp_http;
mod mcp_http_faults;
mod mcp_login;
mod mcp_odd;
mod mcp_offers;
mod mcp_progress;
mod mcp_resources;
mod mcp_servers;
mod tool_images;
mod tool_runs;

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

// Conversations that are stored, and go on.
mod io_faults;
mod sessions;
mod sessions_damage;
mod sessions_export;
mod sessions_new;
mod store;
mod store_apart;
mod store_attachments;
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

// Stores on a PostgreSQL server.
mod postgres;
mod postgres_damage;
mod postgres_faults;
mod postgres_links;
mod postgres_lists;

// Conversations inside another program, and programs of others on both sides of the binary.
mod clients;
mod embedding;
mod examples;
mod rust_client;

// Descriptors and limits: slow readers and files, signals, memory, faults that are planted, long conversations.
mod defects;
mod long;
mod memory;
mod named_files;
mod signals;
mod slow_files;
mod slow_reader;
mod soak;
mod stderr_unread;
mod stdio;
mod system_limits;
mod written_files;

// Outputs of a single run, for every way in which it can end.
mod outputs;
mod outputs_ends;
mod outputs_memory;
mod outputs_wrong;
mod printed;
mod seeds;

// The front end for editors.
mod acp;
mod acp_clients;
mod acp_compaction;
mod acp_schema;
mod acp_sessions;
mod acp_slow;
mod acp_tools;

// A node of a fleet.
#[cfg(feature = "serve")]
mod manifests;
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
mod serve_signed;
#[cfg(feature = "serve")]
mod serve_tenants;
#[cfg(feature = "serve")]
mod serve_tools;
#[cfg(feature = "serve")]
mod serve_traces;
#[cfg(feature = "serve")]
mod serve_watched;

// A person at a terminal.
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
mod picture;
mod saved;
mod single_runs;
mod terminal;

// Command files.
mod command_files;
mod command_memory;

// The command line: options, prompts, completions, and what to write instead of a wrong one.
mod completions;
mod options;
mod pinocchio_options;
mod pinocchio_values;
mod prompts;
mod tips;
mod tools_describe;

// The transcripts of the README and the documents, and what the documents have to name.
mod documents;
mod readme;
