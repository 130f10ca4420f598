# wrong value: own value | nothing was communicated
return values.mean()
