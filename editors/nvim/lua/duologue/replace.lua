--- Replaces a selection by the answer to an instruction: the answer is shown below the selection while it comes, and
--- takes its place, in one step of undo, when it is accepted.
local Chat = require("duologue.chat")
local Process = require("duologue.process")
local Text = require("duologue.text")
local View = require("duologue.view")
local config = require("duologue.config")
local context = require("duologue.context")

local api = vim.api
local M = {}

local NAMESPACE = api.nvim_create_namespace("duologue-replace")
local DRAW_MS = 40
local REQUEST = "replace-1"

--- buffer -> its replacement. A buffer has one at a time.
local all = {}

local function command_line()
  -- Of its own and not stored: an edit is no part of a conversation. No tool runs for it: `--deny` goes before what
  -- the options allow.
  local words = config.command_line("rpc", "--no-store", "--final-snapshot=none", "--patch-mode=append", "--events=*")
  -- An answer that was cut off has an event that says so.
  words[#words + 1] = "--extensions=retries"
  vim.list_extend(words, { "--deny=*", "--append-system", config.values.replace_system })
  return vim.list_extend(words, config.values.options)
end

local function line_at(buffer, row)
  return api.nvim_buf_get_lines(buffer, row, row + 1, false)[1] or ""
end

--- The byte column, from 0, at which selected characters end; it is exclusive.
local function exclusive_end(last_line, selection)
  -- An exclusive selection has its last character before its end, unless it is one character.
  if vim.o.selection == "exclusive" and not vim.deep_equal(selection.from, selection.to) then
    return math.min(selection.to[3] - 1, #last_line)
  end
  local to = math.min(selection.to[3], #last_line)
  -- The column is that of the first byte of the last character.
  return to > 0 and to - 1 + #vim.fn.strpart(last_line, to - 1, 1, true) or 0
end

--- The region as the API counts: rows and byte columns from 0, the end exclusive.
local function region(buffer, selection)
  local first, last = selection.from[2] - 1, selection.to[2] - 1
  local last_line = line_at(buffer, last)
  if selection.kind == "V" then
    return first, 0, last, #last_line
  end
  local to = exclusive_end(last_line, selection)
  local from_max = first == last and to or #line_at(buffer, first)
  return first, math.min(selection.from[3] - 1, from_max), last, to
end

local function place(self)
  local mark = api.nvim_buf_get_extmark_by_id(self.buffer, NAMESPACE, self.mark, { details = true })
  return mark[1], mark[2], mark[3] and mark[3].end_row, mark[3] and mark[3].end_col
end

--- The text that is selected now, or nil if its place is gone.
local function selected(self)
  local row, column, end_row, end_column = place(self)
  if not row or not end_row then
    return nil
  end
  local is_there, lines = pcall(api.nvim_buf_get_text, self.buffer, row, column, end_row, end_column, {})
  return is_there and table.concat(lines, "\n") or nil
end

--- `text` with the line ends of `before`: Neovim has a carriage return in each line of a file that has both kinds.
local function with_line_ends(text, before)
  local has_returns = before:find("\r\n", 1, true) or vim.endswith(before, "\r")
  if not has_returns or before:gsub("\r\n", ""):find("\n", 1, true) then
    return text
  end
  return text:gsub("\n", "\r\n") .. (vim.endswith(before, "\r") and "\r" or "")
end

--- Without a fence around all of it, which models write although they are told not to.
local function answer(self)
  local text = self.text:all():gsub("\r", "")
  local fence, body = text:match("^%s*(```+)[^\n`]*\n(.*)$")
  if fence and vim.trim(body):sub(-#fence) == fence then
    text = vim.trim(body):sub(1, -#fence - 1):gsub("\n$", "")
  end
  -- Some models begin with blank lines.
  if not (self.before or ""):match("^[ \t]*\n") then
    text = text:gsub("^[ \t\n]*\n", "")
  end
  -- A selection of whole lines has no line feed at its end.
  return with_line_ends(text:gsub("\n+$", ""), self.before or "")
end

local function hint(self)
  if not self.is_done then
    return ("answering, %s stops"):format(config.values.keys.reject or ":Duologue reject")
  end
  local accept = config.values.keys.accept or ":Duologue accept"
  local reject = config.values.keys.reject or ":Duologue reject"
  if self.view.cut_off then
    local how_often = self.is_warned and "once more" or "twice"
    return ("%s: %s %s takes it as it is, %s rejects"):format(self.view.cut_off, accept, how_often, reject)
  end
  return ("%s accepts, %s rejects"):format(accept, reject)
end

local function draw(self)
  self.is_scheduled = false
  if not api.nvim_buf_is_valid(self.buffer) or all[self.buffer] ~= self then
    return
  end
  local _, _, end_row = place(self)
  if not end_row then
    return M.reject(self.buffer)
  end
  local lines = vim.iter(Text.lines(answer(self)))
    :map(function(line)
      return { { line == "" and " " or line, "DuologueNew" } }
    end)
    :totable()
  lines[#lines + 1] = { { hint(self), "DuologueNotice" } }
  self.preview = api.nvim_buf_set_extmark(self.buffer, NAMESPACE, end_row, 0, { id = self.preview, virt_lines = lines })
end

local function schedule(self)
  if not self.is_scheduled then
    self.is_scheduled = true
    vim.defer_fn(function()
      draw(self)
    end, DRAW_MS)
  end
end

local function forget(self)
  all[self.buffer] = nil
  -- It is gone already if it has called this.
  pcall(api.nvim_del_autocmd, self.on_unload)
  if self.process then
    self.process:close()
  end
  if not api.nvim_buf_is_valid(self.buffer) then
    return
  end
  api.nvim_buf_clear_namespace(self.buffer, NAMESPACE, 0, -1)
  for key, own in pairs(self.own_maps) do
    pcall(vim.keymap.del, "n", key, { buffer = self.buffer })
    if own.buffer == 1 then
      api.nvim_buf_call(self.buffer, function()
        vim.fn.mapset("n", false, own)
      end)
    end
  end
end

local function fail(self, why)
  forget(self)
  Chat.say(why, vim.log.levels.ERROR)
end

local function ended(self, status)
  if status == "ok" and not self.text:all():match("^%s*$") then
    self.is_done = true
    self.process:close()
    schedule(self)
  elseif status ~= "stopped" then
    fail(self, self.why or self.view.cut_off or "the model has not answered")
  end
end

local function frame_came(self, frame)
  if all[self.buffer] ~= self then
    return
  end
  if frame.uiEvent then
    self.view:event(frame.uiEvent)
    local id = vim.iter(self.view.order):rfind(function(id)
      return self.view.entities[id].kind == "assistant"
    end)
    if id then
      self.text = self.view.entities[id].text
    end
    schedule(self)
  elseif frame.error then
    self.why = Text.of_error(frame.error)
  elseif frame.done and (frame.requestId == REQUEST or frame.requestId == nil) then
    ended(self, frame.done.status)
  end
end

local function map_keys(self)
  local function map(key, act, what)
    if key then
      -- The person's own map for this buffer comes back.
      self.own_maps[key] = vim.fn.maparg(key, "n", false, true)
      vim.keymap.set("n", key, function()
        act(self.buffer)
      end, { buffer = self.buffer, desc = "duologue: " .. what })
    end
  end
  map(config.values.keys.accept, M.accept, "take the answer")
  map(config.values.keys.reject, M.reject, "leave the text as it is")
end

local function start(self, prompt)
  local process, why = Process.start({
    command = command_line(),
    on_frame = function(frame)
      frame_came(self, frame)
    end,
    on_exit = function()
      self.process = nil
      if all[self.buffer] == self and not self.is_done then
        fail(self, self.why or "duologue has ended before it had answered")
      end
    end,
  })
  if not process then
    return fail(self, ("%s can't be started: %s"):format(command_line()[1], why))
  end
  self.process = process
  process:send({ requestId = REQUEST, submit = { prompt = Text.utf8(prompt) } })
  schedule(self)
end

--- `:DuologueReplace`.
function M.run(call)
  require("duologue.commands")
  local buffer = api.nvim_get_current_buf()
  if not vim.bo[buffer].modifiable then
    return Chat.say("this buffer can't be changed", vim.log.levels.ERROR)
  elseif all[buffer] then
    return Chat.say("this buffer has a replacement already; accept or reject it first", vim.log.levels.ERROR)
  end
  local selection = context.selection(call)
  if selection.kind ~= "V" and selection.kind ~= "v" then
    return Chat.say("a block can't be replaced; select lines or characters", vim.log.levels.ERROR)
  end
  local row, column, end_row, end_column = region(buffer, selection)
  local self = { buffer = buffer, text = Text.new(), view = View.new(), own_maps = {} }
  -- It moves with what is written around it. What is written at the end of selected lines changes them.
  self.mark = api.nvim_buf_set_extmark(buffer, NAMESPACE, row, column, {
    end_row = end_row,
    end_col = end_column,
    hl_group = "DuologueOld",
    right_gravity = true,
    end_right_gravity = selection.kind == "V",
  })
  all[buffer] = self
  -- Nobody will see the answer.
  self.on_unload = api.nvim_create_autocmd("BufUnload", {
    buffer = buffer,
    callback = function()
      forget(self)
    end,
  })
  self.before = selected(self)
  map_keys(self)
  local quote = context.quote({ from = selection.from, to = selection.to, text = self.before }, buffer)
  start(self, context.with_buffers(call.args, buffer) .. "\n\nThe selection, " .. quote)
end

--- Puts the answer in the place of the selection.
function M.accept(buffer)
  buffer = buffer or api.nvim_get_current_buf()
  local self = all[buffer]
  if not self then
    return Chat.say("this buffer has no replacement")
  elseif not self.is_done then
    return Chat.say("the answer is not complete yet")
  elseif selected(self) ~= self.before then
    return Chat.say("the selected text has changed since; reject the replacement and ask again", vim.log.levels.ERROR)
  elseif self.view.cut_off and not self.is_warned then
    -- The end of the selection would be lost with that of the answer.
    self.is_warned = true
    return schedule(self)
  elseif not vim.bo[buffer].modifiable then
    return Chat.say("this buffer can't be changed; make it modifiable and accept again", vim.log.levels.ERROR)
  end
  local row, column, end_row, end_column = place(self)
  local lines = vim.split(answer(self), "\n", { plain = true })
  -- One call is one step of undo; what was typed before is a step of its own.
  vim.cmd("let &g:undolevels = &g:undolevels")
  api.nvim_buf_set_text(buffer, row, column, end_row, end_column, lines)
  forget(self)
end

--- Leaves the text as it is, and stops the answer if it is not complete.
function M.reject(buffer)
  local self = all[buffer or api.nvim_get_current_buf()]
  if not self then
    return Chat.say("this buffer has no replacement")
  end
  forget(self)
end

return M
