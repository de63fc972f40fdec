--- `:Duologue`: a word of the list below with as many words after it as it takes, or a prompt.
local Chat = require("duologue.chat")
local Text = require("duologue.text")
local cli = require("duologue.cli")
local config = require("duologue.config")
local context = require("duologue.context")
local windows = require("duologue.windows")

local M = {}

for name, link in pairs({
  DuologueQuestion = "DiagnosticVirtualTextWarn",
  DuologueError = "DiagnosticError",
  DuologueNotice = "Comment",
  DuologueOld = "DiffDelete",
  DuologueNew = "DiffAdd",
}) do
  vim.api.nvim_set_hl(0, name, { default = true, link = link })
end

local function complain(why)
  Chat.say(why, vim.log.levels.ERROR)
end

local function with_chat(act)
  return function(words)
    local chat = windows.current()
    if not chat then
      return Chat.say("there is no conversation; `:Duologue` begins one")
    end
    act(chat, words)
  end
end

local function open(session, folder)
  local chat = Chat.open(session, folder)
  windows.show(chat)
  return chat
end

--- A time of RFC 3339 in UTC, as it is here.
local function local_time(text)
  local year, month, day, hour, min, sec = (text or ""):match("^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)")
  if not year then
    return ""
  end
  -- Read as a time of this place, it is wrong by as much as its own time of UTC read so.
  local seconds = os.time({ year = year, month = month, day = day, hour = hour, min = min, sec = sec, isdst = false })
  local again = os.date("!*t", seconds)
  again.isdst = false
  return os.date("%Y-%m-%d %H:%M", seconds + (seconds - os.time(again)))
end

local function session_line(session)
  local when = local_time(session.lastActivity)
  local turns = ("%d turn%s"):format(session.turns or 0, session.turns == 1 and "" or "s")
  local folder = vim.fn.fnamemodify(session.folder or "", ":~")
  return ("%s  %s  (%s, %s)"):format(when, Text.short(session.title or session.id, 60), turns, folder)
end

--- Those of this folder first; each part is newest first.
local function by_folder(sessions)
  local here, others = {}, {}
  for _, session in ipairs(sessions) do
    table.insert(session.folder == vim.fn.getcwd() and here or others, session)
  end
  return vim.list_extend(here, others)
end

local function resume(words)
  if words[1] then
    return open(words[1])
  end
  local store = config.store()
  if not store then
    return Chat.say("nothing is stored: `store` of setup is false")
  end
  cli.run({ "sessions", "list", "--store", store }, function(sessions)
    if #sessions == 0 then
      return Chat.say("no conversation is stored in " .. store)
    end
    local options = { prompt = "Conversation:", kind = "duologue_session", format_item = session_line }
    vim.ui.select(by_folder(sessions), options, function(session)
      if session then
        open(session.id)
      end
    end)
  end, complain)
end

local OTHER = "another one …"

--- Lets the person choose of a list, or write a name that it does not have.
local function choose(what, names, on_name)
  vim.ui.select(vim.list_extend(names, { OTHER }), { prompt = what .. ":" }, function(name)
    if name ~= OTHER then
      return name and on_name(name)
    end
    vim.ui.input({ prompt = what .. ": " }, function(typed)
      if typed and typed ~= "" then
        on_name(typed)
      end
    end)
  end)
end

--- `command` prints a list of objects that are named by `member`.
local function switch(what, command, member)
  return with_chat(function(chat, typed)
    local function take(name)
      chat:switch({ [what:lower()] = name })
    end
    if typed[1] then
      return take(typed[1])
    end
    cli.run(cli.with_options(command), function(list)
      local names = vim.tbl_map(function(item)
        return item[member]
      end, list)
      choose(what, names, take)
    end, function(why)
      -- The list is a help: without it the name can be written.
      Chat.say(why, vim.log.levels.WARN)
      choose(what, {}, take)
    end, chat.folder)
  end)
end

local fork = with_chat(function(chat)
  local store = config.store()
  if not store then
    return Chat.say("a conversation that is not stored can't be copied")
  end
  cli.run({ "sessions", "fork", chat.session, "--store", store }, function(data)
    windows.hide(chat)
    open(data[1], chat.folder)
  end, complain, chat.folder)
end)

--- name -> what it does, and how many words it takes at most. With more words the line is a prompt.
local COMMANDS = {
  new = { function()
    open()
  end, 0 },
  resume = { resume, 1 },
  stop = { with_chat(Chat.stop), 0 },
  retry = { with_chat(Chat.retry), 0 },
  edit = { with_chat(windows.edit), 0 },
  model = { switch("Model", "models", "id"), 1 },
  profile = { switch("Profile", "profiles", "name"), 1 },
  fork = { fork, 0 },
  approve = { with_chat(function(chat)
    require("duologue.approvals").ask(chat)
  end), 0 },
  send = { with_chat(windows.send), 0 },
  hide = { with_chat(windows.hide), 0 },
  close = { with_chat(windows.close), 0 },
  accept = { function()
    require("duologue.replace").accept()
  end, 0 },
  reject = { function()
    require("duologue.replace").reject()
  end, 0 },
}

--- A prompt on the command line, with the lines of a range.
local function ask(call, prompt)
  local source = vim.api.nvim_get_current_buf()
  local quote = call.range > 0 and context.quote(context.selection(call), source) or nil
  local chat = windows.current() or Chat.open()
  windows.show(chat)
  if prompt == "" then
    if quote then
      windows.add(chat, quote .. "\n\n")
    end
    return
  end
  local typed = quote and (prompt .. "\n\n" .. quote) or prompt
  if not chat:ask(context.with_buffers(typed, windows.source()), typed) then
    windows.give_back(chat, typed)
  end
end

function M.run(call)
  windows.remember_source(vim.api.nvim_get_current_buf())
  local command, words = COMMANDS[call.fargs[1]], vim.list_slice(call.fargs, 2)
  if command and call.range == 0 and #words <= command[2] then
    return command[1](words)
  end
  -- Two dashes begin a prompt that would be a command.
  ask(call, (call.args:gsub("^%-%-%s+", "")))
end

function M.names()
  return vim.fn.sort(vim.tbl_keys(COMMANDS))
end

function M.complete(lead, line)
  if not line:match("^%S*Duologue%s+%S*$") then
    return {}
  end
  return vim.iter(M.names())
    :filter(function(name)
      return vim.startswith(name, lead)
    end)
    :totable()
end

return M
