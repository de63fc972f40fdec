--- The conversation as the frames tell it: messages, tool calls with their results, questions, counts. Pure: it
--- knows no buffer and no process.
local Text = require("duologue.text")

local M = {}
M.__index = M

function M.new()
  return setmetatable({
    -- id -> an entity. `kind` is user, assistant, thinking, error, tool or notice.
    entities = {},
    order = {},
    -- id -> how it has changed since it was drawn: "grown" (text at its end), "changed" or "gone".
    dirty = {},
    -- The last event that is in the view, as a number to compare and as the text to ask with.
    ordinal = 0,
    ordinal_text = "0",
    -- Calls that wait for a decision, in the order in which they were asked about.
    questions = {},
    -- Why the last answer is not complete, or nil.
    cut_off = nil,
    notices = 0,
  }, M)
end

function M:touch(id, how)
  if how == "grown" and self.dirty[id] then
    return
  end
  self.dirty[id] = how
end

--- Hands over what has changed.
function M:take_dirty()
  local dirty = self.dirty
  self.dirty = {}
  return dirty
end

function M:entity(id, kind)
  local entity = self.entities[id]
  if not entity then
    entity = { id = id, kind = kind, status = "", text = Text.new() }
    self.entities[id] = entity
    self.order[#self.order + 1] = id
    self:touch(id, "changed")
  end
  return entity
end

function M:set(entity, members)
  local has_changed = false
  for name, value in pairs(members) do
    if name == "text" then
      has_changed = entity.text:set(value) or has_changed
    elseif entity[name] ~= value then
      entity[name] = value
      has_changed = true
    end
  end
  if has_changed then
    self:touch(entity.id, "changed")
  end
end

function M:remove(id)
  if self.entities[id] then
    self.entities[id] = nil
    self.order = vim.iter(self.order)
      :filter(function(other)
        return other ~= id
      end)
      :totable()
    self:touch(id, "gone")
  end
end

--- A line of the editor's own. It is not a part of the conversation.
function M:notice(text)
  self.notices = self.notices + 1
  self:set(self:entity("notice-" .. self.notices, "notice"), { text = text })
end

--- The last prompt that began a turn, or nil. Those that joined a run can't be edited.
function M:last_prompt()
  for at = #self.order, 1, -1 do
    local entity = self.entities[self.order[at]]
    if entity.kind == "user" and entity.id:match("%-user$") then
      return entity
    end
  end
end

function M:drop_question(call)
  self.questions = vim.iter(self.questions)
    :filter(function(question)
      return question.id ~= call
    end)
    :totable()
  if self.entities[call] then
    self:set(self.entities[call], { is_asked = false })
  end
end

function M:add_question(payload)
  local id, tool, server = payload.toolCallId, payload.toolName or "", payload.server or ""
  self:drop_question(id)
  local question = { id = id, tool = tool, server = server, input = payload.input or "" }
  self.questions[#self.questions + 1] = question
  self:set(self:entity(id, "tool"), { is_asked = true, name = question.tool, text = question.input })
end

local KINDS = { user = "user", assistant = "assistant", thinking = "thinking", error = "error" }

function M:put_message(payload)
  local entity = self:entity(payload.messageId, KINDS[payload.role] or "assistant")
  self:set(entity, { status = payload.status or "", text = payload.text or "", note = payload.error or "" })
end

function M:put_call(payload)
  local entity = self:entity(payload.toolCallId, "tool")
  self:set(entity, { name = payload.toolName or entity.name, status = payload.status or "" })
  if payload.input then
    self:set(entity, { text = payload.input })
  end
end

function M:put_result(payload)
  local entity = self:entity(payload.toolCallId, "tool")
  self:set(entity, { result = payload.result or "", result_status = payload.status or "" })
end

function M:patch(id, kind, payload, piece)
  local entity = self:entity(id, kind)
  local mode = payload.mode or ""
  if mode:match("_SNAPSHOT$") or mode:match("_REPLACE$") then
    return self:set(entity, { text = piece })
  end
  local has_grown = entity.text:patch(tonumber(payload.offset or 0), piece)
  self:touch(id, has_grown and "grown" or "changed")
end

--- Why an answer is not complete, by the class of its end.
local CUT_OFF = {
  max_tokens = "The answer was cut off at a token limit",
  content_filter = "The provider withheld the answer, or the rest of it",
}

local EVENTS = {}

EVENTS["pinocchio.chatapp.v1.ChatUserMessageAccepted"] = M.put_message
EVENTS["pinocchio.chatapp.v1.ChatTextSegmentFinished"] = M.put_message
EVENTS["pinocchio.chatapp.v1.ChatReasoningSegmentFinished"] = M.put_message
EVENTS["pinocchio.chatapp.v1.ChatToolCallStarted"] = M.put_call
EVENTS["pinocchio.chatapp.v1.ChatToolCallRequested"] = M.put_call
EVENTS["pinocchio.chatapp.v1.ChatToolExecutionStarted"] = M.put_call
EVENTS["pinocchio.chatapp.v1.ChatToolCallFinished"] = M.put_call
EVENTS["pinocchio.chatapp.v1.ChatToolResultReady"] = M.put_result
EVENTS["duologue.tools.v1.ToolApprovalRequested"] = M.add_question

EVENTS["pinocchio.chatapp.v1.ChatTextSegmentStarted"] = function(self, payload)
  self:set(self:entity(payload.messageId, "assistant"), { status = payload.status })
end
EVENTS["pinocchio.chatapp.v1.ChatReasoningSegmentStarted"] = function(self, payload)
  self:set(self:entity(payload.messageId, "thinking"), { status = payload.status })
end
EVENTS["pinocchio.chatapp.v1.ChatTextPatch"] = function(self, payload)
  self:patch(payload.messageId, "assistant", payload, payload.text or "")
end
EVENTS["pinocchio.chatapp.v1.ChatReasoningPatch"] = function(self, payload)
  self:patch(payload.messageId, "thinking", payload, payload.text or "")
end
EVENTS["pinocchio.chatapp.v1.ChatToolArgumentsPatch"] = function(self, payload)
  self:patch(payload.toolCallId, "tool", payload, payload.arguments or "")
end
EVENTS["pinocchio.chatapp.v1.ChatRunFailed"] = function(self, payload)
  self:set(self:entity(payload.messageId, "error"), { status = payload.status, text = payload.error or "" })
end
EVENTS["duologue.tools.v1.ToolApprovalResolved"] = function(self, payload)
  self:drop_question(payload.toolCallId)
end
EVENTS["duologue.tools.v1.ToolServerChanged"] = function(self, payload)
  if payload.state == "UNAVAILABLE" or payload.state == "GONE" then
    self:notice(("The tools of %s are not there: %s"):format(payload.server, payload.reason or ""))
  end
end
EVENTS["duologue.session.v1.UsageTotals"] = function(self, payload)
  self.usage = payload.session
end
EVENTS["duologue.provider.v1.ModelSwitched"] = function(self, payload)
  self.model, self.profile = payload.model, payload.profile
end
EVENTS["duologue.provider.v1.RetryScheduled"] = function(self, payload)
  self.retry = ("attempt %s of %s"):format(payload.attempt, payload.attemptsMax)
end
EVENTS["duologue.provider.v1.RetryStarted"] = function(self)
  self.retry = nil
end
EVENTS["duologue.provider.v1.AnswerTruncated"] = function(self, payload)
  self.cut_off = CUT_OFF[payload.finishClass] or "The answer was cut off"
  self:notice(self.cut_off)
end
EVENTS["pinocchio.chatapp.v1.ChatProviderCallStarted"] = function(self)
  self.cut_off = nil
end
EVENTS["duologue.session.v1.StoreDegraded"] = function(self)
  -- Ordinals after the first missing one are given out again by the process that goes on.
  self.is_degraded = true
end
EVENTS["duologue.session.v1.TurnDropped"] = function(self, payload)
  for _, id in ipairs(payload.messageIds or {}) do
    self:remove(id)
  end
  for _, id in ipairs(payload.toolCallIds or {}) do
    self:drop_question(id)
    self:remove(id)
  end
end

local function type_of(payload)
  return (payload["@type"] or ""):match("[^/]*$")
end

function M:advance(ordinal)
  if (tonumber(ordinal) or 0) >= self.ordinal then
    self.ordinal, self.ordinal_text = tonumber(ordinal) or 0, tostring(ordinal)
  end
end

--- Takes an event in. Events of types that it does not know change nothing.
function M:event(event)
  -- Two events may share an ordinal; applied twice they change nothing.
  if (tonumber(event.ordinal) or 0) < self.ordinal then
    return
  end
  self:advance(event.ordinal)
  local payload = event.payload or {}
  local handle = EVENTS[type_of(payload)]
  if handle then
    handle(self, payload)
  end
end

function M:put_entity(entity)
  local payload = entity.payload or {}
  if entity.kind == "ChatMessage" then
    self:put_message(payload)
  elseif entity.kind == "ChatToolCall" then
    self:put_call(payload)
  elseif entity.kind == "ChatToolResult" then
    self:put_result(payload)
  elseif entity.kind == "ToolApproval" then
    self:add_question(payload)
  end
end

--- The id in the view: a call has its result and its question with it.
local function id_in_view(entity)
  if entity.kind == "ChatToolResult" then
    return (entity.id:gsub(":result$", ""))
  elseif entity.kind == "ToolApproval" then
    return (entity.id:gsub(":approval$", ""))
  end
  return entity.id
end

--- Takes a snapshot in. `is_whole`: what it does not have is gone; otherwise it has what has changed. What did not
--- change since the view's last event stays as it is, so that nobody who reads it is disturbed.
function M:snapshot(snapshot, is_whole)
  local seen, before = {}, self.is_degraded and -1 or self.ordinal
  if is_whole then
    for _, question in ipairs(self.questions) do
      self:drop_question(question.id)
    end
  end
  for _, entity in ipairs(snapshot.entities or {}) do
    local id = id_in_view(entity)
    local is_newer = (tonumber(entity.lastEventOrdinal) or 0) >= before
    seen[id] = true
    if entity.tombstone then
      self:remove(id)
    elseif is_newer or not self.entities[id] or entity.kind == "ToolApproval" then
      self:put_entity(entity)
    end
  end
  if is_whole then
    self:keep(seen)
    self.is_degraded = nil
    self.ordinal = 0
  end
  self:advance(snapshot.snapshotOrdinal or 0)
end

function M:keep(seen)
  for _, id in ipairs(vim.list_extend({}, self.order)) do
    if not seen[id] and self.entities[id].kind ~= "notice" then
      self:remove(id)
    end
  end
end

return M
