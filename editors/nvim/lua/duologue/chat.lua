--- A conversation: its process, its view, its two buffers.
local Process = require("duologue.process")
local Text = require("duologue.text")
local Transcript = require("duologue.transcript")
local View = require("duologue.view")
local config = require("duologue.config")

local api, uv = vim.api, vim.uv
local M = {}
M.__index = M

--- Options that the plugin relies on. Those of models, keys and tools are the person's.
local OPTIONS = {
  "rpc",
  "--on-busy=queue", -- a prompt that is sent during an answer waits for its turn
  "--final-snapshot=none", -- events keep the view up to date
  "--patch-mode=append",
  "--patch-fields=lean",
  "--events=*", -- also where a variable names others
  "--extensions=approvals,edit,history,retries,store,switch-model,targeted-cancel,tool-servers,usage",
}
--- A process that ends so often without an answer in between is not started again by itself.
local DEATHS_MAX = 3

--- Conversations by session. One that was closed is none.
M.all = {}

M.say = require("duologue.say")

local function new_session()
  local chance = ("%04x"):format(uv.hrtime() % 0x10000)
  return ("nvim-%s-%s"):format(os.date("%Y%m%d-%H%M%S"), chance)
end

local function new_buffer(name)
  local buffer = vim.iter(api.nvim_list_bufs()):find(function(buffer)
    return api.nvim_buf_get_name(buffer) == name
  end)
  if not buffer then
    buffer = api.nvim_create_buf(true, false)
    api.nvim_buf_set_name(buffer, name)
  end
  return buffer
end

--- Opens the conversation of a session, or begins one. Its processes run in `folder`, or else in the current one.
function M.open(session, folder)
  if session and M.all[session] then
    return M.all[session]
  end
  local self = setmetatable({
    session = session or new_session(),
    -- Neovim's own changes with the window and with `:cd`, and paths in `options` may be relative.
    folder = folder or vim.fn.getcwd(),
    view = View.new(),
    requests = 0,
    pending = {},
    deaths = 0,
  }, M)
  local buffer = new_buffer("duologue://" .. self.session)
  self.transcript = Transcript.new(buffer, self.view, self.session)
  M.all[self.session] = self
  require("duologue.windows").attach(self)
  self:start()
  return self
end

--- The conversation that a buffer belongs to.
function M.of_buffer(buffer)
  return vim.iter(pairs(M.all)):map(function(_, chat)
    return (chat.transcript.buffer == buffer or chat.prompt == buffer) and chat or nil
  end):next()
end

function M:command_line()
  local words = config.command_line(unpack(OPTIONS))
  local store = config.store()
  if store then
    vim.list_extend(words, { "--store", store, "--session", self.session })
  end
  return vim.list_extend(words, config.values.options)
end

function M:start()
  self.is_greeted, self.last_error = false, nil
  local process, why = Process.start({
    command = self:command_line(),
    cwd = self.folder,
    on_frame = function(frame)
      self:frame(frame)
    end,
    on_lost = function(why)
      self:lost(why)
    end,
    on_stderr = function(line)
      self:warn(line)
    end,
    on_exit = function(code, signal)
      self:exited(code, signal)
    end,
  })
  self.process = process
  if not process then
    self.view:notice(("%s can't be started: %s. Is it installed? `:checkhealth duologue` tells more."):format(
      self:command_line()[1],
      why
    ))
  end
  self:changed()
end

--- Draws what has changed, and the state of the conversation.
function M:changed()
  self.transcript:schedule()
end

--- Warnings of duologue, such as that no provider is configured.
function M:warn(line)
  local warning = line:match("^ WARN (.*)") or line:match("^duologue: (.*)")
  if warning and warning ~= self.last_warning then
    self.last_warning = warning
    self.view:notice(warning)
    self:changed()
  end
end

--- Sends a request. `on_done(status, error)` is called once: the status is "lost" if the process ends before.
function M:request(request, on_done)
  if not self.process then
    self:start()
  end
  if not self.process then
    return
  end
  self.requests = self.requests + 1
  local id = ("%d-%x-%d"):format(uv.os_getpid(), uv.hrtime(), self.requests)
  request.requestId = id
  local line = vim.json.encode(request)
  if self.bytes_max and #line > self.bytes_max then
    return nil, ("the prompt is too long: %d bytes, and at most %d can be sent"):format(#line, self.bytes_max)
  end
  self.pending[id] = { on_done = on_done, request = request }
  self.process:write(line .. "\n")
  self:changed()
  return id
end

function M:frame(frame)
  local id = frame.requestId or ""
  if frame.hello then
    self:hello(frame.hello)
  elseif frame.uiEvent then
    self:event(id, frame.uiEvent)
  elseif frame.snapshot then
    -- The first one names no request and is the whole conversation.
    self.view:snapshot(frame.snapshot, id == "")
    require("duologue.approvals").update()
  elseif frame.error then
    self:failed(id, frame.error)
  elseif frame.done then
    self:ended(id, frame.done.status)
  end
  self:changed()
end

function M:hello(hello)
  self.is_greeted = true
  for _, word in ipairs(hello.capabilities or {}) do
    local name, value = word:match("^([%w-]+)=(.*)$")
    if name == "model" then
      self.view.model = value
    elseif name == "max-request-bytes" then
      self.bytes_max = tonumber(value)
    elseif name == "config-error" then
      self.view:notice(value)
    end
  end
end

function M:event(id, event)
  local pending = self.pending[id]
  if pending and event.name == "ChatUserMessageAccepted" then
    pending.is_accepted = true
  end
  self.view:event(event)
  if event.name == "ToolApprovalRequested" or event.name == "ToolApprovalResolved" then
    require("duologue.approvals").update()
  end
end

function M:failed(id, failure)
  if failure.terminal then
    self.last_error = failure
  end
  local pending = self.pending[id]
  if pending then
    pending.error = failure
  end
  -- The error of a run is a message of the conversation. A call that was decided meanwhile needs no decision.
  if failure.code ~= "run_failed" and failure.code ~= "unknown_tool_call" and failure.code ~= "no_active_request" then
    self.view:notice(("**%s**: %s"):format(failure.code or "error", Text.of_error(failure)))
  end
end

function M:ended(id, status)
  local pending = self.pending[id]
  self.pending[id] = nil
  if not pending then
    return
  end
  if status == "ok" then
    self.deaths = 0
  end
  self.view.retry = nil
  if status ~= "ok" then
    self:return_prompt(pending)
  end
  if pending.on_done then
    pending.on_done(status, pending.error)
  end
end

--- A prompt that was refused or withdrawn comes back: nothing that was typed is lost.
function M:return_prompt(pending)
  local request = pending.request
  local edit = request.edit and request.edit.replace
  local prompt = request.submit and request.submit.prompt or (edit and edit.prompt)
  if prompt and not pending.is_accepted then
    require("duologue.windows").give_back(self, pending.typed or prompt, edit and edit.messageId)
  end
end

--- Frames were lost: asks what has changed since the last event that was seen.
function M:lost(why)
  self.view:notice("What duologue wrote could not be read (" .. why .. "); the conversation is asked for again.")
  -- Once: an answer that can't be read either must not be asked for without end.
  if not self.is_catching_up then
    self.is_catching_up = true
    self:request({ snapshot = { sinceOrdinal = self.view.ordinal_text } }, function()
      self.is_catching_up = false
    end)
  end
end

local function ending(code, signal)
  return signal ~= 0 and ("was ended by signal %d"):format(signal) or ("ended with status %d"):format(code)
end

function M:exited(code, signal)
  local pending, stderr = self.pending, self.process.stderr
  self.process, self.pending, self.is_catching_up = nil, {}, false
  self.view.questions = {}
  require("duologue.approvals").update()
  if self.is_closed or vim.v.exiting ~= vim.NIL then
    return
  end
  self.deaths = self.deaths + 1
  if not self.is_greeted or (self.last_error and self.last_error.code ~= "interrupted") then
    self:cant_go_on(code, signal, stderr)
  else
    self:go_on(code, signal)
  end
  self:give_up(pending)
  self:changed()
end

--- The process could not hold the conversation: another one would end in the same way.
function M:cant_go_on(code, signal, stderr)
  if not self.last_error then
    local tail = table.concat(vim.list_slice(stderr, math.max(1, #stderr - 10)), "\n")
    self.view:notice(("duologue %s before it could answer.\n%s"):format(ending(code, signal), tail))
  end
  self.view:notice("The next prompt starts duologue again.")
end

function M:go_on(code, signal)
  if not config.store() then
    self.view:notice(("duologue %s. Nothing is stored: the next prompt begins a new conversation, and the model does "
      .. "not know what is above."):format(ending(code, signal)))
    self.view.ordinal = 0
  elseif self.deaths > DEATHS_MAX then
    self.view:notice(("duologue %s, for the %dth time. The next prompt starts it again."):format(
      ending(code, signal),
      self.deaths
    ))
  else
    self.view:notice(("duologue %s and was started again. The conversation goes on."):format(ending(code, signal)))
    -- With the same command line: `--session` resumes what is stored, and the snapshot brings the view up to date.
    self:start()
  end
end

--- Requests of the process that has ended get no answer any more.
function M:give_up(pending)
  for _, request in pairs(pending) do
    self:return_prompt(request)
    if request.on_done then
      request.on_done("lost")
    end
  end
end

--- The submits and edits that run or wait.
function M:runs()
  return vim.iter(pairs(self.pending))
    :map(function(_, pending)
      local request = pending.request
      local is_run = request.submit or (request.edit and (request.edit.regenerate or request.edit.replace))
      return is_run and pending or nil
    end)
    :totable()
end

function M:is_busy()
  return #self:runs() > 0
end

--- Asks a prompt, or replaces the message `edited` by it. `typed` comes back if it can't be asked. Returns whether it
--- is on its way.
function M:ask(prompt, typed, edited)
  if prompt:match("^%s*$") then
    return false
  end
  local request = { submit = { prompt = Text.utf8(prompt) } }
  if edited then
    request = { edit = { replace = { messageId = edited, prompt = Text.utf8(prompt) } } }
  end
  local id, why = self:request(request)
  if not id then
    M.say(why or "duologue can't be started; the conversation says why", vim.log.levels.ERROR)
    return false
  end
  self.pending[id].typed = typed
  return true
end

--- Stops the answer and withdraws what waits.
function M:stop()
  if not self:is_busy() then
    return M.say("nothing is being answered")
  end
  -- First those that wait: none of them may begin in between.
  self:request({ cancel = { waiting = true } })
  self:request({ cancel = vim.empty_dict() })
end

function M:retry()
  if not self.view:last_prompt() then
    return M.say("there is no prompt to ask again")
  end
  self:request({ edit = { regenerate = vim.empty_dict() } })
end

--- Chooses what answers: a model or a profile.
function M:switch(choice)
  self:request({ switchModel = choice }, function(status)
    if status == "ok" then
      M.say("the next prompt is answered by " .. (self.view.model or "another model"))
    end
  end)
end

function M:decide(question, decision, reason)
  -- At once: the question must not be asked again until the answer is back.
  self.view:drop_question(question.id)
  self:request({ approve = { toolCallId = question.id, decision = decision, reason = reason } })
end

--- Ends the process. What is stored can be opened again.
function M:close()
  self.is_closed = true
  M.all[self.session] = nil
  if self.process then
    self.process:close()
  end
  require("duologue.approvals").update()
end

return M
