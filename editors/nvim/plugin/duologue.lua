-- Defines the commands; everything else is loaded when one of them is used.
if vim.g.loaded_duologue then
  return
end
vim.g.loaded_duologue = true

if vim.fn.has("nvim-0.10") == 0 then
  vim.api.nvim_echo({ { "duologue needs Neovim 0.10 or later, and this one is older.", "WarningMsg" } }, true, {})
  return
end

vim.api.nvim_create_user_command("Duologue", function(call)
  require("duologue.commands").run(call)
end, {
  nargs = "*",
  range = true,
  desc = "Talk to a language model",
  complete = function(...)
    return require("duologue.commands").complete(...)
  end,
})

vim.api.nvim_create_user_command("DuologueReplace", function(call)
  require("duologue.replace").run(call)
end, {
  nargs = "+",
  range = true,
  desc = "Replace the selection by the answer to an instruction",
})
