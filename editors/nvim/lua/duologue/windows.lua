--- The two windows of a conversation: what was said above, and the prompt that is being written below. The prompt has
--- a buffer of its own, so that its undo is the person's alone, whatever the answer above does meanwhile.
local Chat = require("duologue.chat")
local Text = require("duologue.text")
local config = require("duologue.config")

local api = vim.api
local M = {}

local NAMESPACE = api.nvim_create_namespace("duologue-prompt")

--- The windows of this tab page that show a conversation or its prompt.
local function windows_of(chat)
  return vim.tbl_filter(function(window)
    return Chat.of_buffer(api.nvim_win_get_buf(window)) == chat
  end, api.nvim_tabpage_list_wins(0))
end

--- Whether this tab page has another window than those. One that floats can't be the last one.
local function has_others(windows)
  return vim.iter(api.nvim_tabpage_list_wins(0)):any(function(window)
    return not vim.list_contains(windows, window) and api.nvim_win_get_config(window).relative == ""
  end)
end

local function window_of(buffer)
  return vim.iter(api.nvim_tabpage_list_wins(0)):find(function(window)
    return api.nvim_win_get_buf(window) == buffer
  end)
end

local function local_options(window, options)
  for name, value in pairs(options) do
    -- For this buffer in this window: another buffer gets its own back.
    vim.wo[window][0][name] = value
  end
end

local function dress_transcript(chat, window)
  local_options(window, {
    winbar = "%{v:lua.require'duologue.winbar'.transcript()}",
    wrap = true,
    -- A line that is longer than the window is shown in part, and not left out.
    smoothscroll = true,
    linebreak = true,
    number = false,
    relativenumber = false,
    foldmethod = "manual",
    foldenable = true,
    foldtext = "",
    foldcolumn = "1",
    fillchars = "fold: ,eob: ",
  })
  chat.transcript:fold_all(window)
end

local function dress_prompt(window)
  local_options(window, {
    winbar = "%{v:lua.require'duologue.winbar'.prompt()}",
    wrap = true,
    linebreak = true,
    number = false,
    relativenumber = false,
    winfixheight = true,
    fillchars = "eob: ",
  })
end

local function key_text(name)
  return config.values.keys[name] or "`:Duologue`"
end

--- Says how to send while there is nothing to send.
local function show_hint(chat)
  api.nvim_buf_clear_namespace(chat.prompt, NAMESPACE, 0, -1)
  local lines = api.nvim_buf_get_lines(chat.prompt, 0, 2, false)
  if #lines == 1 and lines[1] == "" then
    local hint = ("%s sends, %s in insert mode; %s lists all keys"):format(
      key_text("send"),
      key_text("send_insert"),
      key_text("help")
    )
    api.nvim_buf_set_extmark(chat.prompt, NAMESPACE, 0, 0, {
      virt_text = { { hint, "Comment" } },
      virt_text_pos = "overlay",
    })
  end
end

local function map(buffer, modes, key, act, what)
  if key then
    vim.keymap.set(modes, key, act, { buffer = buffer, desc = "duologue: " .. what, nowait = true })
  end
end

local function map_both(chat, buffer)
  map(buffer, "n", config.values.keys.stop, function()
    chat:stop()
  end, "stop the answer")
  map(buffer, "n", config.values.keys.help, function()
    vim.cmd.help("duologue-keys")
  end, "list the keys")
end

local function map_prompt(chat)
  local keys = config.values.keys
  local function send()
    M.send(chat)
  end
  map(chat.prompt, "n", keys.send, send, "send the prompt")
  map(chat.prompt, { "n", "i" }, keys.send_insert, send, "send the prompt")
  map_both(chat, chat.prompt)
end

local function map_transcript(chat)
  local keys, transcript = config.values.keys, chat.transcript.buffer
  map(transcript, "n", keys.approve, function()
    require("duologue.approvals").ask(chat)
  end, "decide about a tool call")
  map(transcript, "n", keys.write, function()
    M.write(chat)
  end, "write a prompt")
  map(transcript, "n", keys.hide, function()
    M.hide(chat)
  end, "hide the conversation")
  map_both(chat, transcript)
end

local function new_prompt(chat)
  local buffer = api.nvim_create_buf(false, false)
  api.nvim_buf_set_name(buffer, "duologue://" .. chat.session .. "/prompt")
  local options = vim.bo[buffer]
  options.buftype, options.bufhidden, options.swapfile, options.modeline = "nofile", "hide", false, false
  options.filetype = "markdown"
  return buffer
end

--- Whether a buffer can be used; if `:bdelete` has taken its text, options and maps away, the rest of it goes, too.
local function is_usable(buffer)
  if not api.nvim_buf_is_valid(buffer) then
    return false
  elseif not api.nvim_buf_is_loaded(buffer) then
    api.nvim_buf_delete(buffer, { force = true })
    return false
  end
  return true
end

--- Makes the prompt of a conversation if there is none, or if its buffer was deleted.
local function ensure_prompt(chat)
  if chat.prompt and is_usable(chat.prompt) then
    return
  end
  local prompt = new_prompt(chat)
  chat.prompt, chat.editing, chat.draft = prompt, nil, nil
  map_prompt(chat)
  show_hint(chat)
  local function on(events, act)
    api.nvim_create_autocmd(events, { buffer = prompt, callback = act })
  end
  on({ "TextChanged", "TextChangedI", "TextChangedP" }, function()
    show_hint(chat)
  end)
  on("BufUnload", function()
    vim.schedule(function()
      is_usable(prompt)
    end)
  end)
end

--- Gives a conversation its prompt, keys and events.
function M.attach(chat)
  ensure_prompt(chat)
  map_transcript(chat)
  local group = api.nvim_create_augroup("duologue-" .. chat.transcript.buffer, { clear = true })
  local function on(events, buffer, act)
    api.nvim_create_autocmd(events, { group = group, buffer = buffer, callback = act })
  end
  on("BufWinEnter", chat.transcript.buffer, function()
    -- Later: the window is not complete yet.
    vim.schedule(function()
      if chat.transcript:is_valid() then
        vim.iter(vim.fn.win_findbuf(chat.transcript.buffer)):each(function(window)
          dress_transcript(chat, window)
        end)
      end
    end)
  end)
  on("WinClosed", chat.transcript.buffer, function()
    vim.schedule(function()
      M.close_prompt(chat)
    end)
  end)
  -- The text is gone for good: the process ends, too.
  on({ "BufDelete", "BufWipeout" }, chat.transcript.buffer, function()
    vim.schedule(function()
      M.close(chat)
    end)
  end)
end

--- Closes the prompt's window when that of the conversation is gone.
function M.close_prompt(chat)
  if not api.nvim_buf_is_valid(chat.prompt) or window_of(chat.transcript.buffer) then
    return
  end
  local window = window_of(chat.prompt)
  if window and #api.nvim_tabpage_list_wins(0) > 1 then
    api.nvim_win_close(window, true)
  end
end

function M.close(chat)
  if chat.is_closed then
    return
  end
  chat:close()
  for _, buffer in ipairs({ chat.prompt, chat.transcript.buffer }) do
    if api.nvim_buf_is_valid(buffer) then
      api.nvim_buf_delete(buffer, { force = true })
    end
  end
end

--- Draws the conversation that a buffer is named after; opens it if it is not open.
function M.read(buffer)
  local chat = Chat.of_buffer(buffer)
  local session = api.nvim_buf_get_name(buffer):match("^duologue://(.+)$")
  if chat and chat.transcript.buffer == buffer then
    chat.transcript:redraw()
  elseif not chat and session and not session:match("/prompt$") then
    M.last = Chat.open(session)
  end
end

local SPLITS = {
  right = "botright vsplit",
  left = "topleft vsplit",
  below = "botright split",
  above = "topleft split",
  tab = "tab split",
}

--- Shows a conversation in this tab page; the cursor goes to its prompt.
function M.show(chat)
  M.last = chat
  local window = window_of(chat.transcript.buffer)
  if not window then
    local split = SPLITS[config.values.layout]
    if split then
      vim.cmd(split)
    end
    window = api.nvim_get_current_win()
    api.nvim_win_set_buf(window, chat.transcript.buffer)
    dress_transcript(chat, window)
    api.nvim_win_set_cursor(window, { api.nvim_buf_line_count(chat.transcript.buffer), 0 })
  end
  M.show_prompt(chat, window)
end

function M.show_prompt(chat, above)
  ensure_prompt(chat)
  local window = window_of(chat.prompt)
  if not window then
    api.nvim_set_current_win(above)
    vim.cmd("belowright " .. config.values.prompt_height .. "split")
    window = api.nvim_get_current_win()
    api.nvim_win_set_buf(window, chat.prompt)
    dress_prompt(window)
  end
  api.nvim_set_current_win(window)
end

--- From the conversation to its prompt.
function M.write(chat)
  M.show(chat)
  vim.cmd.startinsert({ bang = true })
end

--- Closes the windows of a conversation in this tab page, and with them a tab page that has no other ones.
function M.hide(chat)
  local windows = windows_of(chat)
  if #windows == 0 then
    return
  end
  if not has_others(windows) then
    return vim.cmd.tabclose({ mods = { emsg_silent = true } })
  end
  for _, window in ipairs(windows) do
    api.nvim_win_close(window, true)
  end
end

local function set_prompt(chat, text)
  api.nvim_buf_set_lines(chat.prompt, 0, -1, false, Text.lines(text))
  show_hint(chat)
  for _, window in ipairs(vim.fn.win_findbuf(chat.prompt)) do
    api.nvim_win_set_cursor(window, { api.nvim_buf_line_count(chat.prompt), 0 })
  end
end

local function prompt_text(chat)
  return table.concat(api.nvim_buf_get_lines(chat.prompt, 0, -1, false), "\n")
end

--- Sends what is written. The text is gone once it is on its way; undo brings it back.
function M.send(chat)
  ensure_prompt(chat)
  local typed = prompt_text(chat)
  -- An earlier prompt has the text of the buffer already.
  local prompt = chat.editing and typed or require("duologue.context").with_buffers(typed, M.source())
  if chat:ask(prompt, typed, chat.editing) then
    local draft = chat.editing and chat.draft or ""
    -- If the edit is refused, it takes the place of the draft again.
    chat.editing, chat.draft = nil, draft
    api.nvim_buf_call(chat.prompt, function()
      -- What was typed and that it is gone are two steps of undo, also in insert mode.
      vim.cmd("let &g:undolevels = &g:undolevels")
    end)
    set_prompt(chat, draft)
  end
end

--- Puts a text that was not asked into the prompt, above what was written since. It takes the place of the message
--- `edited` again if nothing was written and the message is still there.
function M.give_back(chat, text, edited)
  if chat.is_closed then
    return
  end
  ensure_prompt(chat)
  local written = prompt_text(chat)
  local is_empty = written:match("^%s*$")
  if edited and chat.view.entities[edited] and (is_empty or written == chat.draft) then
    chat.editing, chat.draft = edited, written
    return set_prompt(chat, text)
  end
  set_prompt(chat, is_empty and text or (text .. "\n\n" .. written))
end

--- Puts a text into the prompt, below what is written.
function M.add(chat, text)
  local written = prompt_text(chat)
  set_prompt(chat, written:match("^%s*$") and text or (written .. "\n\n" .. text))
end

--- Puts an earlier prompt into the prompt's buffer; sending it replaces the turn and all after it. The second time,
--- leaves everything as it is. What was being written comes back either way.
function M.edit(chat)
  ensure_prompt(chat)
  if chat.editing then
    set_prompt(chat, chat.draft or "")
    chat.editing, chat.draft = nil, nil
    return chat:changed()
  end
  local entity
  if api.nvim_get_current_buf() == chat.transcript.buffer then
    entity = chat.transcript:entity_at(api.nvim_win_get_cursor(0)[1])
  end
  if not (entity and entity.kind == "user" and entity.id:match("%-user$")) then
    entity = chat.view:last_prompt()
  end
  if not entity then
    return Chat.say("there is no prompt to edit")
  end
  if chat:is_busy() then
    return Chat.say("an answer is being written; `:Duologue stop` stops it")
  end
  chat.editing, chat.draft = entity.id, prompt_text(chat)
  M.show(chat)
  set_prompt(chat, entity.text:all())
  chat:changed()
end

--- The buffer that `@buffer` means: the last one that is none of a conversation.
function M.source()
  return M.source_buffer and api.nvim_buf_is_valid(M.source_buffer) and M.source_buffer or nil
end

function M.remember_source(buffer)
  if api.nvim_buf_is_valid(buffer) and vim.bo[buffer].buftype == "" and not Chat.of_buffer(buffer) then
    M.source_buffer = buffer
  end
end

api.nvim_create_autocmd("BufEnter", {
  group = api.nvim_create_augroup("duologue-source", { clear = true }),
  callback = function(event)
    M.remember_source(event.buf)
  end,
})

--- The conversation of this window, else of this tab page, else the last one that was shown.
function M.current()
  local chat = Chat.of_buffer(api.nvim_get_current_buf())
  for _, window in ipairs(chat and {} or api.nvim_tabpage_list_wins(0)) do
    chat = chat or Chat.of_buffer(api.nvim_win_get_buf(window))
  end
  return chat or (M.last and not M.last.is_closed and M.last) or nil
end

return M
