//! What help says.

pub(super) const ABOUT: &str =
    "A chat runtime for language models that other programs hold as a subprocess";

pub(super) const LONG_ABOUT: &str = "\
A chat runtime for language models that other programs hold as a subprocess.

One process is one conversation. It reads one JSON request per line on standard input and writes one
JSON frame per line on standard output. Without a command it does what `duologue rpc` does.";

pub(super) const RPC_ABOUT: &str =
    "Hold one conversation over standard input and output; streams JSON Lines";

pub(super) const RPC_LONG_ABOUT: &str = "\
Hold one conversation over standard input and output.

This command streams JSON Lines: standard output is one JSON object per line (protobuf JSON of
pinocchio.chatapp.rpc.v1.RpcLine), written as things happen. The first line is `hello`, and every
request line gets exactly one `done`, the last line with its requestId. Requests are

  {\"requestId\":\"r1\",\"submit\":{\"prompt\":\"hello\"}}  start a run
  {\"requestId\":\"r2\",\"cancel\":{}}                  stop the active run
  {\"requestId\":\"r3\",\"snapshot\":{}}                tell the state of the conversation
  {\"requestId\":\"r4\",\"shutdown\":{}}                end once what runs and waits has ended

Logs go to standard error or to --log-file, never to standard output.";

pub(super) const RPC_AFTER: &str = "\
Examples:
  echo '{\"submit\":{\"prompt\":\"hello\"}}' | duologue rpc
  cat requests.jsonl | duologue rpc --on-busy queue
  duologue rpc --engine openai --base-url http://localhost:11434/v1 --model llama3.2

Environment:
  DUOLOGUE_API_KEY, OPENAI_API_KEY   key for the openai engine; the first one that is set is used
  OPENAI_BASE_URL                    its server, if neither --base-url nor DUOLOGUE_BASE_URL is set
  SSL_CERT_FILE                      more root certificates (PEM) for its server
  NO_COLOR                           no colours on a terminal
  Every option has a variable of its own, shown with it; the option wins. A variable that is empty
  counts as not set.

Exit status:
  0    end of input or shutdown, or nobody reads the output any more
  1    standard input could not be read
  2    the command line or a file named on it is wrong
  70   a defect of this program
  74   standard output could not be written
  128+ ended by a signal: 129 SIGHUP, 130 SIGINT, 143 SIGTERM";

pub(super) const EXEC_ABOUT: &str = "Run one prompt; prints text, JSON, or streams JSON Lines";

pub(super) const EXEC_LONG_ABOUT: &str = "\
Run one prompt and print the answer.

By default the answer is printed as text, as the model writes it. With --output jsonl (or --rpc),
--output objects or --json-stream this command streams JSON Lines: one JSON object per line, written
as things happen, the first of which names format and version. With --no-stream (or --output json)
it prints one JSON document at the end instead.";

pub(super) const EXEC_AFTER: &str = "\
Examples:
  duologue exec \"What is a duologue?\"
  git diff | duologue exec --system 'Review this change.' -
  duologue exec --json-stream \"explain auth\" | jq -r 'select(.type == \"text_delta\") | .payload.content'
  duologue exec --output json --prompt-file prompt.txt | jq -r .data

Environment:
  DUOLOGUE_API_KEY, OPENAI_API_KEY   key for the openai engine; the first one that is set is used
  OPENAI_BASE_URL                    its server, if neither --base-url nor DUOLOGUE_BASE_URL is set
  SSL_CERT_FILE                      more root certificates (PEM) for its server
  NO_COLOR                           no colours on a terminal
  Every option has a variable of its own, shown with it; the option wins. A variable that is empty
  counts as not set.

Exit status:
  0    the model has answered, or nobody reads the output any more
  1    the run failed, or the answer is not what response-type and schema ask for
  2    the command line, or a file named on it, is wrong
  3    the answer was cut off, for example at a token limit; what there is of it was printed
  70   a defect of this program
  74   standard output could not be written
  128+ ended by a signal: 129 SIGHUP, 130 SIGINT, 143 SIGTERM; with --json-stream 1";

pub(super) const RUN_ABOUT: &str =
    "Run the prompt of a command file; prints text, JSON, or streams JSON Lines";

pub(super) const RUN_LONG_ABOUT: &str = "\
Run the prompt of a command file and print the answer. `run-command FILE.yaml --help` tells the
file's own flags; where one of them has the name of an option of this program, the file's is meant,
and this program's is called --duologue-NAME.

By default the answer is printed as text, as the model writes it. With --output jsonl (or --rpc),
--output objects or --json-stream this command streams JSON Lines: one JSON object per line, written
as things happen, the first of which names format and version. With --no-stream (or --output json)
it prints one JSON document at the end instead.";

/// Goes with what a file says of itself.
pub(super) const RUN_OUTPUT: &str = "\
By default the answer is printed as text, as the model writes it. With --output jsonl (or --rpc),
--output objects or --json-stream this command streams JSON Lines: one JSON object per line, written
as things happen, the first of which names format and version. With --no-stream (or --output json)
it prints one JSON document at the end instead.";

pub(super) const RUN_AFTER: &str = "\
Examples:
  duologue run-command summarize.yaml --file report.txt
  duologue run-command extract.yaml --text \"$(cat page.txt)\" --output objects
  duologue run-command summarize.yaml --file report.txt --print-prompt
  duologue run-command assistant.yaml --rpc --stdin-rpc

Environment:
  DUOLOGUE_API_KEY, OPENAI_API_KEY   key for the openai engine; the first one that is set is used
  OPENAI_BASE_URL                    its server, if neither --base-url nor DUOLOGUE_BASE_URL is set
  SSL_CERT_FILE                      more root certificates (PEM) for its server
  NO_COLOR                           no colours on a terminal
  Every option has a variable of its own, shown with it; the option wins. A variable that is empty
  counts as not set.

Exit status:
  0    the model has answered, or nobody reads the output any more
  1    the run failed, or the answer is not what response-type and schema ask for
  2    the command line, or a file named on it, is wrong
  3    the answer was cut off, for example at a token limit; what there is of it was printed
  70   a defect of this program
  74   standard output could not be written
  128+ ended by a signal: 129 SIGHUP, 130 SIGINT, 143 SIGTERM; with --json-stream 1";
