--- The line above each window: what answers, what goes on, what it has taken.
local Chat = require("duologue.chat")
local Text = require("duologue.text")

local M = {}

--- 1234 is 1.2k.
local function short(number)
  number = tonumber(number) or 0
  return number < 1000 and tostring(number) or ("%.1fk"):format(number / 1000)
end

local function usage(totals)
  if not totals or not totals.inputTokens then
    return nil
  end
  local parts = { short(totals.inputTokens) .. " in", short(totals.outputTokens) .. " out" }
  if (totals.cost or "") ~= "" then
    parts[#parts + 1] = totals.cost .. " " .. (totals.currency or "")
  end
  return table.concat(parts, ", ")
end

local function state(chat)
  if not chat.process then
    return "not running"
  elseif #chat.view.questions > 0 then
    local calls = #chat.view.questions
    return ("%d call%s wait%s: :Duologue approve"):format(calls, calls == 1 and "" or "s", calls == 1 and "s" or "")
  elseif chat.view.retry then
    return "the provider failed, " .. chat.view.retry
  end
  local runs = #chat:runs()
  if runs > 1 then
    return ("answering, %d wait"):format(runs - 1)
  end
  return runs == 1 and "answering" or nil
end

--- The text of `%{}` is not read as a format again: nothing that a provider names can be one.
local function line(parts)
  return " " .. table.concat(
    vim.tbl_filter(function(part)
      return part and part ~= ""
    end, parts),
    " · "
  )
end

function M.transcript()
  local chat = Chat.of_buffer(vim.api.nvim_get_current_buf())
  if not chat then
    return ""
  end
  local view = chat.view
  return line({ Text.short(view.model or "duologue", 60), state(chat) or false, usage(view.usage) or false })
end

function M.prompt()
  local chat = Chat.of_buffer(vim.api.nvim_get_current_buf())
  if chat and chat.editing then
    return " edits an earlier prompt. :Duologue edit cancels"
  end
  return " prompt"
end

return M
