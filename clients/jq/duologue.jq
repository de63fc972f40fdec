# Filters for the lines of the protocol of duologue, as `duologue rpc` and `duologue exec --rpc` write them; jq 1.6 and later.
#
#     duologue exec --rpc "hello" | jq -L clients/jq --unbuffered -j 'include "duologue"; text'
#     duologue rpc < requests.jsonl | jq -L clients/jq -cn 'include "duologue"; by_request(inputs)'
#
# The first filters take one line at a time. The others take a stream of lines, mostly `inputs` (with -n), and work for one
# without end as for a file: they give what they have as soon as it is whole, and keep no more than they need for that.
# Lines that are no frames, or frames of a later version, give nothing.

# The payload of an event of the type $name, below the package $package.
def _event($package; $name):
  objects | .uiEvent? | objects | .payload | objects
  | select(.["@type"] == "type.googleapis.com/" + $package + "." + $name);
def _chat($name): _event("pinocchio.chatapp.v1"; $name);

# Whether a patch has new text; others have all text so far, and are for `fold`.
def _is_append: .mode == "CHAT_STREAM_PATCH_MODE_APPEND" or .mode == null;

# One line at a time

# The pieces of the answer, as they stream.
def text: _chat("ChatTextPatch") | select(_is_append) | .text // empty;

# The pieces of the model's reasoning, as they stream.
def reasoning: _chat("ChatReasoningPatch") | select(_is_append) | .text // empty;

# The calls of tools: {requestId, id, name, input}; input is a value, or text where the model wrote no JSON.
def tool_calls:
  . as $line | _chat("ChatToolCallRequested")
  | {requestId: $line.requestId, id: .toolCallId, name: .toolName, input: ((.input // "") as $input | $input | try fromjson catch $input)};

# The results of tools: {requestId, id, name, status, result}.
def results:
  . as $line | _chat("ChatToolResultReady")
  | {requestId: $line.requestId, id: .toolCallId, name: .toolName, status, result: (.result // "")};

# The token counts of each call of the model that the provider has counted.
def usage:
  . as $line | _chat("ChatProviderCallFinished") | select(.usage)
  | {requestId: $line.requestId, call: .correlation.providerCallId} + .usage;

# The costs after each call of the model, as decimal numbers; with the extension `usage`, where prices are known.
def cost:
  . as $line | _event("duologue.session.v1"; "UsageTotals") | select(.run.cost)
  | {requestId: $line.requestId, call: .call.cost, run: .run.cost, session: .session.cost, currency: .run.currency};

# What went wrong: {requestId, code, class, message, terminal}; class is null where the error has none.
def errors:
  . as $line | objects | .error? | objects
  | {requestId: $line.requestId, code,
     class: (if .code == "run_failed" or .code == "engine_init_failed" then (.detail | strings | split(":")[0]) // null else null end),
     message, terminal: (.terminal // false)};

# The values that were found in an answer that was asked for as JSON.
def values: _event("duologue.extract.v1"; "ObjectExtracted") | .json | fromjson;

# A stream of lines

# An object for each request when it has its `done`, and at the end of the stream for those that have none:
# {requestId, status, text, texts, reasoning, toolCalls, values, usage, cost, error}. `text` is what the last call of the
# model said, `texts` what each of them said; `values` are those of the last call, `usage` has a count for each call.
def by_request(lines):
  def new: {texts: [], call: null, reasoning: "", toolCalls: [], values: [], usage: [], cost: null, error: null};
  def finished: {
    requestId: .id, status, text: (.texts | last // ""), texts, reasoning,
    toolCalls, values, usage, cost, error};
  foreach ((lines | objects), null) as $line ({open: {}, ended: []};
    .ended = []
    | if $line == null then .ended = [.open[]]
      else (($line.requestId | strings) // null) as $id
        | if $id == null then . else
            .open[$id] |= ((. // (new + {id: $id, status: null}))
              | reduce ($line | _chat("ChatTextSegmentFinished")) as $segment (.;
                  ($segment.correlation.providerCallId // "") as $call
                  | if .call == $call and (.texts | length) > 0 then .texts[-1] += ($segment.text // "")
                    else .call = $call | .texts += [$segment.text // ""] end)
              | reduce ($line | _chat("ChatReasoningSegmentFinished")) as $segment (.; .reasoning += ($segment.text // ""))
              | reduce ($line | tool_calls) as $call (.; .toolCalls += [$call | del(.requestId)])
              | reduce ($line | results) as $result (.;
                  .toolCalls |= map(if .id == $result.id then . + {status: $result.status, result: $result.result} else . end))
              | reduce ($line | _chat("ChatProviderCallStarted")) as $_ (.; .values = [])
              | reduce ($line | values) as $value (.; .values += [$value])
              | reduce ($line | _event("duologue.extract.v1"; "AnswerRejected")) as $_ (.; .values = [])
              | reduce ($line | usage) as $usage (.; .usage += [$usage | del(.requestId)])
              | reduce ($line | cost) as $cost (.; .cost = $cost.run)
              | reduce ($line | errors) as $error (.; .error = (.error // ($error | del(.requestId)))))
            | if $line.done | type == "object" then .open[$id].status = $line.done.status | .ended = [.open[$id]] | del(.open[$id]) else . end
          end
      end;
    .ended[] | finished);

# The first bytes of a text.
def _first_bytes($bytes):
  if utf8bytelength <= $bytes then .
  else
    reduce explode[] as $code ({rest: $bytes, text: []};
      (if $code < 128 then 1 elif $code < 2048 then 2 elif $code < 65536 then 3 else 4 end) as $size
      | .rest -= $size | if .rest >= 0 then .text += [$code] else . end)
    | .text | implode
  end;

# A text after a patch, whose offset counts bytes.
def _patched($patch; $new):
  if $patch | _is_append then _first_bytes($patch.offset // 0 | tonumber) + ($new // "") else $new // "" end;

def _or_leave_out: with_entries(select(.value != null and .value != "" and .value != false));

# The conversation as the frame `snapshot` has it, {snapshotOrdinal, entities}, out of events and of the snapshots among
# them: whenever a request has its `done` after it has changed something, and at the end of a stream that was cut off.
def fold(lines):
  def put($id; $kind; $ordinal; $type; change):
    .entities[$id] |= (
      (. // {kind: $kind, id: $id, createdOrdinal: $ordinal, lastEventOrdinal: $ordinal,
             payload: {"@type": "type.googleapis.com/pinocchio.chatapp.v1.\($type)"}})
      | .lastEventOrdinal = $ordinal | .payload |= (change | _or_leave_out));
  def message($id; $ordinal; change): put($id; "ChatMessage"; $ordinal; "ChatMessageEntity"; .messageId = $id | change);
  def tool($id; $ordinal; $event; change):
    put($id; "ChatToolCall"; $ordinal; "ToolCallEntity";
      . + ($event | {messageId, toolCallId, toolName, correlation}) | .status = $event.status | change);
  def segment($event): . + ($event | {role, correlation, prompt: (.prompt // null)} | _or_leave_out)
    | .parentMessageId = ($event.messageId | split(":")[:-2] | join(":"))
    | .segment = ($event.correlation.segmentId // "segment-0" | ltrimstr("segment-") | tonumber)
    | .segmentType = (if $event.role == "thinking" then "reasoning" else "text" end);
  def text_is($text): .text = $text | .content = $text;
  def apply($name; $event; $ordinal):
    $event.messageId as $id
    | if $name == "ChatUserMessageAccepted" then
        .run as $run
        | message($id; $ordinal; . + ($event | {role, prompt, text, content, status, attachments}) | .final = true
            # A prompt that joins a run has that of the call before it.
            | .correlation = (if $run and ($id | startswith($run.id)) then $run.correlation else null end))
      elif $name == "ChatProviderCallStarted" then .run.correlation = $event.correlation
      elif $name == "ChatRunFinished" and $event.error then
        # The answer was cut off.
        ([.entities[] | select(.id | startswith($id + ":text:"))] | max_by(.createdOrdinal | tonumber)) as $cut
        | if $cut then .entities[$cut.id].payload.error = $event.error else . end
      elif $name == "ChatRunStarted" then
        .run = {id: $id, correlation: $event.correlation}
        | if .entities[$id + "-user"] then .entities[$id + "-user"].payload.correlation = $event.correlation else . end
      elif $name == "ChatTextSegmentStarted" or $name == "ChatReasoningSegmentStarted" then
        message($id; $ordinal; segment($event) | .status = $event.status | .streaming = true)
      elif $name == "ChatTextPatch" or $name == "ChatReasoningPatch" then
        message($id; $ordinal; text_is(.text // "" | _patched($event; $event.text)))
      elif $name == "ChatTextSegmentFinished" or $name == "ChatReasoningSegmentFinished" then
        message($id; $ordinal; segment($event) | text_is($event.text) | .status = $event.status | .streaming = null | .final = true)
      elif $name == "ChatToolCallStarted" then tool($event.toolCallId; $ordinal; $event; .input = $event.input)
      elif $name == "ChatToolArgumentsPatch" then
        tool($event.toolCallId; $ordinal; $event; .input = (.input // "" | _patched($event; $event.arguments)))
      elif $name == "ChatToolCallRequested" or $name == "ChatToolExecutionStarted" then
        tool($event.toolCallId; $ordinal; $event; .input = ($event.input // .input) | .executing = $event.executing)
      elif $name == "ChatToolCallFinished" then tool($event.toolCallId; $ordinal; $event; .executing = null)
      elif $name == "ChatToolResultReady" then
        put($event.toolCallId + ":result"; "ChatToolResult"; $ordinal; "ToolResultEntity";
          . + ($event | {messageId, toolCallId, toolName, result, status, correlation}))
      elif $name == "ChatRunFailed" then
        message($id; $ordinal; text_is($event.error) | .role = "error" | .status = $event.status | .error = $event.error
          | .final = true | .correlation = $event.correlation)
      else . end;
  def compacted($event; $ordinal):
    .entities[$event.compactionId] = {
      kind: "Compaction", id: $event.compactionId, createdOrdinal: $ordinal, lastEventOrdinal: $ordinal, payload: $event};
  def drop($event):
    reduce ($event.messageIds[]?, ($event.toolCallIds[]? | ., . + ":result")) as $id (.; del(.entities[$id]))
    # A compaction belongs to the turn that it was made in or after.
    | reduce $event.turnIds[]? as $turn (.;
        .entities |= with_entries(select(.value | .kind != "Compaction" or .payload.correlation.turnId != $turn)));
  def see($snapshot; $is_whole):
    (if $is_whole then .entities = {} else . end)
    | reduce $snapshot.entities[]? as $entity (.;
        if $entity.tombstone then del(.entities[$entity.id]) else .entities[$entity.id] = $entity end);
  def shown:
    {snapshotOrdinal: .ordinal,
     entities: ([.entities[]] | sort_by(.kind == "Compaction", (.createdOrdinal // 0 | tonumber)))};
  foreach ((lines | objects), null) as $line ({ordinal: "0", entities: {}, is_new: false, give: null};
    .give = null
    | if $line == null then (if .is_new then .give = shown else . end)
      elif $line.snapshot | type == "object" then
        see($line.snapshot; $line.requestId == null)
        | .ordinal = ([.ordinal, $line.snapshot.snapshotOrdinal // "0"] | max_by(tonumber)) | .is_new = true
      elif $line.uiEvent | type == "object" then
        $line.uiEvent as $ui
        | if ($ui.ordinal // "0" | tonumber) < (.ordinal | tonumber) then .
          else
            .ordinal = ($ui.ordinal // "0") | .is_new = true
            | (($ui.payload | objects | .["@type"] | strings) // "" | ltrimstr("type.googleapis.com/")) as $type
            | if $type | startswith("pinocchio.chatapp.v1.") then
                apply($type | ltrimstr("pinocchio.chatapp.v1."); $ui.payload; $ui.ordinal)
              elif $type == "duologue.session.v1.TurnDropped" then drop($ui.payload)
              elif $type == "duologue.session.v1.Compacted" then compacted($ui.payload; $ui.ordinal)
              else . end
          end
      elif ($line.done | type == "object") and .is_new then .give = shown | .is_new = false
      else . end;
    .give | objects);

# How soon each call of the model was answered: {requestId, call, firstByteMs, firstTokenMs, durationMs}, counted from the
# request. The first two are null without the extension `timing`, and where there was no first byte or piece.
def timing(lines):
  def given: .give | objects;
  foreach ((lines | objects), null) as $line ({call: null, give: null};
    .give = null
    | ([$line | _chat("ChatProviderCallFinished")][0]) as $ended
    | ([$line | _event("duologue.provider.v1"; "CallTiming")][0]) as $timing
    | if $timing and .call and .call.call == $timing.correlation.providerCallId then
        .give = .call + ($timing | {firstByteMs, firstTokenMs} | map_values(if . == null then . else tonumber end)) | .call = null
      elif $line == null or ([$line | .uiEvent, .done | objects] | length > 0) then .give = .call | .call = null
      else . end
    | if $ended then
        .call = {requestId: $line.requestId, call: $ended.correlation.providerCallId, firstByteMs: null, firstTokenMs: null,
                 durationMs: ($ended.durationMs // "0" | tonumber)}
      else . end;
    given);
