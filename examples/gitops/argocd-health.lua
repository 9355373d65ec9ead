-- SPDX-License-Identifier: Apache-2.0
-- Argo CD: the key resource.customizations.health.gpuscale.dev_GPUAutoscaler of the ConfigMap argocd-cm. The same text
-- serves gpuscale.dev_GPUPool.
local health = {status = "Progressing", message = "Waiting for the controller"}
local status = obj.status
if status == nil or status.conditions == nil then
  return health
end
if status.observedGeneration ~= nil and obj.metadata.generation ~= nil and status.observedGeneration < obj.metadata.generation then
  return health
end
local paused = false
for _, condition in ipairs(status.conditions) do
  if condition.type == "Conflict" and condition.status == "True" then
    return {status = "Degraded", message = condition.message}
  end
  paused = paused or (condition.type == "Paused" and condition.status == "True")
  if condition.type == "Ready" then
    if condition.status == "True" then
      health = {status = "Healthy", message = condition.message}
    elseif condition.status == "False" then
      health = {status = "Degraded", message = condition.message}
    end
  end
end
if health.status == "Healthy" and paused then
  return {status = "Suspended", message = "The policy is paused"}
end
return health
