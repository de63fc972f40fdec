--- One process of duologue: requests in, frames out, and how it ended.
local Lines = require("duologue.lines")
local say = require("duologue.say")

local uv = vim.uv
local M = {}
M.__index = M

--- Reading stops while so much has not been handled, as while Neovim waits for a key in a prompt. The pipe then
--- fills, and duologue merges what it would write: memory stays bounded on both sides.
local UNREAD_BYTES_MAX = 4 * 1024 * 1024
--- How long frames are handled before keys are.
local SLICE_NS = 8 * 1000 * 1000
--- What is kept of standard error, for an error.
local STDERR_LINES_MAX = 50
--- A process that has ended may have left its pipes to another one.
local PIPES_MS_MAX = 1000
--- How long a process may take to end by itself, and after SIGTERM.
local END_MS_MAX, TERM_MS_MAX = 2000, 500

--- The processes that have not ended.
local alive = {}

--- `spec` has `command` (words), `cwd` (nil: that of Neovim), `on_frame(frame)`, `on_lost(why)` for a line that can't
--- be read, `on_stderr(line)` and `on_exit(code, signal)`, which is the last that is called. Returns nil and why if the
--- process can't be started.
function M.start(spec)
  local self = setmetatable({ spec = spec, queue = {}, first = 1, last = 0, unread = 0, stderr = {}, open = 2 }, M)
  self.stdin, self.stdout, self.errors = uv.new_pipe(), uv.new_pipe(), uv.new_pipe()
  local words = vim.list_slice(spec.command, 2)
  -- Not jobstart, which swaps NUL and line feed and hands over lists; nor vim.system, which reads without a limit.
  local handle, pid = uv.spawn(spec.command[1], {
    args = words,
    cwd = spec.cwd,
    stdio = { self.stdin, self.stdout, self.errors },
    hide = true,
  }, function(code, signal)
    -- A fast context: almost nothing of Neovim may be called here, nor in the callbacks that read.
    self.exit = { code = code, signal = signal }
    self.handle:close()
    vim.schedule(function()
      self:expect_end()
    end)
  end)
  if not handle then
    vim.iter({ self.stdin, self.stdout, self.errors }):each(function(pipe)
      pipe:close()
    end)
    return nil, tostring(pid)
  end
  self.handle, self.pid = handle, pid
  alive[self] = true
  self:read()
  return self
end

function M:read()
  self.lines = Lines.new(function(line)
    self:handle_line(line)
  end, function()
    self:call("on_lost", "a line of more than " .. Lines.LINE_BYTES_MAX .. " bytes was dropped")
  end)
  self.error_lines = Lines.new(function(line)
    self:handle_stderr(line)
  end, function() end)
  self:read_stdout()
  self.errors:read_start(function(_, chunk)
    vim.schedule(function()
      if chunk then
        self.error_lines:feed(chunk)
      else
        self:pipe_ended()
      end
    end)
  end)
end

function M:read_stdout()
  self.stdout:read_start(function(_, chunk)
    -- Chunks are handled in their order and in the main loop, where buffers may be changed.
    self.last = self.last + 1
    self.queue[self.last] = chunk or false
    self.unread = self.unread + #(chunk or "")
    if self.unread > UNREAD_BYTES_MAX and not self.is_paused then
      self.is_paused = true
      self.stdout:read_stop()
    end
    self:schedule(vim.schedule)
  end)
end

function M:schedule(how)
  if not self.is_scheduled then
    self.is_scheduled = true
    how(function()
      self.is_scheduled = false
      self:drain()
    end)
  end
end

--- Handles chunks for as long as nobody notices; the rest waits for a timer, so that keys come in between.
function M:drain()
  local deadline = uv.hrtime() + SLICE_NS
  while self.first <= self.last do
    if uv.hrtime() > deadline then
      return self:schedule(function(later)
        vim.defer_fn(later, 1)
      end)
    end
    local chunk = self.queue[self.first]
    self.queue[self.first] = nil
    self.first = self.first + 1
    if chunk then
      self.unread = self.unread - #chunk
      self.lines:feed(chunk)
    else
      self:pipe_ended()
    end
  end
  if self.is_paused and not self.stdout:is_closing() then
    self.is_paused = false
    self:read_stdout()
  end
end

function M:handle_line(line)
  if line == "" then
    return
  end
  -- null is nil: a member that is unset, and not vim.NIL, which is true.
  local is_json, frame = pcall(vim.json.decode, line, { luanil = { object = true, array = true } })
  if is_json and type(frame) == "table" then
    self:call("on_frame", frame)
  else
    self:call("on_lost", "a line is not JSON")
  end
end

function M:handle_stderr(line)
  self.stderr[#self.stderr + 1] = line
  if #self.stderr > STDERR_LINES_MAX then
    table.remove(self.stderr, 1)
  end
  self:call("on_stderr", line)
end

--- A defect in what handles one frame must not end the reading of all.
function M:call(name, ...)
  local handler = self.spec[name]
  if not handler then
    return
  end
  local is_done, why = xpcall(handler, debug.traceback, ...)
  if not is_done and not self.is_defect_reported then
    self.is_defect_reported = true
    say("a defect of the plugin: " .. why, vim.log.levels.ERROR)
  end
end

function M:pipe_ended()
  self.open = self.open - 1
  self:finish()
end

function M:expect_end()
  self:finish()
  vim.defer_fn(function()
    self.open = 0
    self:finish()
  end, PIPES_MS_MAX)
end

--- The exit may be known before the last lines are read.
function M:finish()
  if not self.exit or self.open > 0 or not alive[self] then
    return
  end
  alive[self] = nil
  for _, pipe in ipairs({ self.stdin, self.stdout, self.errors }) do
    if not pipe:is_closing() then
      pipe:close()
    end
  end
  self:call("on_exit", self.exit.code, self.exit.signal)
end

--- Writes requests in one piece. What a process can't take now waits in libuv; a process that is gone takes
--- nothing, and its exit says so.
function M:send(...)
  local lines = vim.iter({ ... }):map(vim.json.encode):totable()
  self:write(table.concat(lines, "\n") .. "\n")
end

function M:write(text)
  if not self.stdin:is_closing() and not self.is_ended then
    self.stdin:write(text, function() end)
  end
end

--- Asks the process to stop what it does and to end; its `on_exit` follows.
function M:close()
  if self.is_ended then
    return
  end
  -- In one write: nothing that waits begins in between.
  self:send(
    { requestId = "close-1", cancel = { waiting = true } },
    { requestId = "close-2", cancel = vim.empty_dict() },
    { requestId = "close-3", shutdown = vim.empty_dict() }
  )
  self.is_ended = true
  if not self.stdin:is_closing() then
    self.stdin:shutdown(function()
      if not self.stdin:is_closing() then
        self.stdin:close()
      end
    end)
  end
end

function M:kill(signal)
  if not self.exit then
    self.handle:kill(signal)
  end
end

local function all_ended()
  return vim.iter(pairs(alive)):all(function(process)
    return process.exit ~= nil
  end)
end

--- Ends all processes, for the end of Neovim: asks, then sends SIGTERM, then SIGKILL. None outlives this call.
function M.end_all()
  local function each(act)
    for process in pairs(alive) do
      act(process)
    end
  end
  each(M.close)
  if not vim.wait(END_MS_MAX, all_ended, 5) then
    each(function(process)
      process:kill("sigterm")
    end)
    if not vim.wait(TERM_MS_MAX, all_ended, 5) then
      each(function(process)
        process:kill("sigkill")
      end)
    end
  end
end

vim.api.nvim_create_autocmd("VimLeavePre", {
  group = vim.api.nvim_create_augroup("duologue-processes", { clear = true }),
  callback = M.end_all,
})

return M
